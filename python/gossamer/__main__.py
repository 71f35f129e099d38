"""`python -m gossamer COMMAND`: as the command `gossamer`."""

import sys

from gossamer_command import main

sys.exit(main())
