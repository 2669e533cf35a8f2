"""`python -m headcount` is `headcount`."""

import sys

from headcount.cli.main import main

sys.exit(main())
