# SPDX-License-Identifier: MIT
"""What scripts/bench, scripts/age and scripts/pictures are made of.

  measure.py    the counters: processors, device, memory
  peers.py      the file systems that are compared: how each is made, mounted, asked for its counters, taken down
  tree.py       the tree of real files that `untar`, `git status` and `rm -r` work on
  operation.py  what an operation is
  jobs.py       the operations, in suites: what is done to a mounted peer, and what it is called
  durable.py    those that are durable when they are answered, and write-zeroes
  scrub.py      writers beside a scrub
  traced.py     what a trace costs
  databases.py  PostgreSQL, SQLite, dbench
  zoned.py      a bit of everything, on a zoned drive
  drives.py     the file systems that are compared there
  vm.py         the virtual machine that has the drive
  run.py        the rounds: which peer does which suite when, and leaving nothing behind
  report.py     from samples to medians, ratios and tables
  picture.py    the same as an SVG
  pages.py      what a page of a trace costs a browser (scripts/bench --replay)
  goals.py      what zfuse is to reach, and whether it did
  aging.py      what scripts/age is made of: runs of age/, and their tables
  curves.py     the same as an SVG
  pictures/     what scripts/pictures is made of: a module for each picture of the documents
  scenes/       the small histories that they show
  files.c, mix.c, durable.c, appends.c  the programs that the suites run

A sample is one operation of one peer in one round: {"peer", "operation", "round", "count", "seconds", "costs"}, and
"pair" where several in one round are compared one by one. Runs are kept as JSON, and every report is made from that:
measuring and telling are separate.
"""
