# SPDX-License-Identifier: MIT
"""The modules behind scripts/bench, scripts/age and scripts/pictures.

  measure.py    the counters: processors, device, memory
  peers.py      the file systems that are compared: how each is made, mounted, asked for its counters, taken down
  tree.py       the tree of real files that `untar`, `git status` and `rm -r` work on
  operation.py  the type of an operation
  jobs.py       the operations, in suites: the name of each, and how it is done to a mounted peer
  durable.py    the operations that are durable when they are answered, and write-zeroes
  scrub.py      writers beside a scrub
  traced.py     what a trace costs
  databases.py  PostgreSQL, SQLite, dbench
  zoned.py      operations of all kinds on a zoned drive
  drives.py     the file systems that are compared on the zoned drive
  vm.py         the virtual machine that has the drive
  run.py        the rounds: which peer does which suite when; leaves no mount, daemon or file behind
  report.py     from samples to medians, ratios and tables
  picture.py    the report as an SVG
  pages.py      what a page of a trace costs a browser (scripts/bench --replay)
  goals.py      the goals of zfuse, and whether a run reached them
  aging.py      for scripts/age: runs of the program in age/, and their tables
  curves.py     for scripts/age: the runs as an SVG
  pictures/     for scripts/pictures: a module for each picture of the documents
  scenes/       programs that make the filesystems which the pictures show
  files.c, mix.c, durable.c, appends.c  the programs that the suites run

A sample is one operation of one peer in one round: {"peer", "operation", "round", "count", "seconds", "costs"}, and
"pair" where one round has several samples that are compared one by one. Runs are kept as JSON, and every report is made
from this JSON: measuring and reporting are separate.
"""
