"""The page is one file: modules in their order, nothing that ends it early, no way out."""

from __future__ import annotations

import json
import re

import pytest

from headcount.views.page import build as module
from headcount.views.page.build import HERE, build, bundle, digest, embedded
from headcount.views.page.gather import PageData

BAD = "</script><!-- \u2028 & <script>"


def test_embedded_json_reads_back_and_ends_nothing() -> None:
    text = embedded({BAD: [BAD, 1.5, None]})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {BAD: [BAD, 1.5, None]}
    with pytest.raises(ValueError):
        embedded(float("nan"))


def test_every_module_is_in_it_once_and_after_what_it_imports() -> None:
    text = bundle()
    names = re.findall(r"^const \$(\w+) = \(\(\) =>", text, re.M)
    assert sorted(names) == sorted(path.stem for path in (HERE / "js").glob("*.js"))
    for name in names:
        source = (HERE / "js" / f"{name}.js").read_text(encoding="utf-8")
        for _, other in module.IMPORT.findall(source):
            assert names.index(other.removesuffix(".js")) < names.index(name)
    assert not re.search(r"^(import|export)\b", text, re.M)


def test_every_import_is_exported_and_used() -> None:
    for path in (HERE / "js").glob("*.js"):
        source = path.read_text(encoding="utf-8")
        body = module.IMPORT.sub("", source)
        for names, other in module.IMPORT.findall(source):
            given = module.EXPORT.findall((HERE / "js" / other).read_text(encoding="utf-8"))
            for name in (each.strip() for each in names.split(",")):
                assert name in given, (path.name, name)
                assert re.search(rf"\b{name}\b", body), (path.name, name)


def test_a_circle_and_a_strange_import_are_refused(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "js/main.js": 'import { a } from "./b.js";\n',
        "js/b.js": 'import { m } from "./main.js";\n',
    }
    monkeypatch.setattr(module, "_read", texts.__getitem__)
    with pytest.raises(ValueError, match="imports itself by way of"):
        bundle()
    texts["js/b.js"] = "export default 1;\n"
    with pytest.raises(ValueError, match="not built from"):
        bundle()


def test_the_page_lets_nothing_out() -> None:
    page = build(PageData(version="1", subjects=[], skipped=[(BAD, BAD)]), title=BAD)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<title>&lt;/script&gt;" in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    script = page.rsplit("<script>", 1)[1].rsplit("</script>", 1)[0]
    assert digest(script) in policy[1]
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_the_library_comes_with_its_licence() -> None:
    assert "MIT" in (HERE / "vendor" / "uPlot.LICENSE").read_text(encoding="utf-8")
    head = (HERE / module.LIBRARY).read_text(encoding="utf-8")[:80]
    assert "uPlot (v1.6.32)" in head
