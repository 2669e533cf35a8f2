"""What heads do on data: where they look, what others could do in their place, what they cost."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.behaviour.measure import roles as roles
    from headcount.behaviour.options import RoleOptions as RoleOptions
    from headcount.behaviour.result import Quantity as Quantity
    from headcount.behaviour.result import Roles as Roles
    from headcount.behaviour.result import load_roles as load_roles
    from headcount.behaviour.words import ROLES as ROLES

__getattr__, __dir__ = lazily(__name__)
