"""Prints the newest version of glibc that an ELF program needs, from its table of needed versions."""

import re
import sys

names = re.findall(rb"GLIBC_(\d+)\.(\d+)", open(sys.argv[1], "rb").read())
print(".".join(map(str, max((int(major), int(minor)) for major, minor in names))))
