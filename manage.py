#!/usr/bin/env python
"""Django's command line for the web part of Fogline."""

import os
import sys


def main() -> None:
    os.umask(0o077)  # the database has sessions in it
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
