/* SPDX-License-Identifier: MIT */
/*
 * The events of a trace: one table, included wherever code needs all events.
 *
 * A file that includes this defines three macros before, and this file undefines them:
 *
 *      ZF_TRACE_EVENT(number, name, text)   an event begins; `number` is its number in the file
 *      ZF_TRACE_FIELD(kind, name)           one field of it, in the order of the bytes in the file
 *      ZF_TRACE_END                         the event ends
 *
 * `kind` is one of enum zf_trace_kind, without its prefix. Fields lie one behind the other without
 * padding, and take at most ZF_TRACE_PAYLOAD bytes together. docs/trace.md shows this table; a test
 * compares the two. The number of an event is never reused for another event. A change of an
 * event's fields must raise ZF_TRACE_VERSION.
 */
/* clang-format off */

ZF_TRACE_EVENT(1, dropped, "Events of this thread found its ring full and are not in the trace.")
	ZF_TRACE_FIELD(NUMBER, count)
ZF_TRACE_END
ZF_TRACE_EVENT(2, ended, "The trace was stopped: the last record of a whole trace.")
	ZF_TRACE_FIELD(NUMBER, events)
	ZF_TRACE_FIELD(NUMBER, dropped)
ZF_TRACE_END
ZF_TRACE_EVENT(3, thread, "A thread's first event follows.")
	ZF_TRACE_FIELD(TEXT, name)
ZF_TRACE_END

ZF_TRACE_EVENT(10, operation_began, "An operation of `src/fs` begins.")
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(NUMBER, offset)
	ZF_TRACE_FIELD(NUMBER, bytes)
	ZF_TRACE_FIELD(OPERATION, operation)
ZF_TRACE_END
ZF_TRACE_EVENT(11, operation_ended, "The operation ends; `began` is the sequence of its beginning, `inode` the inode that it found or made.")
	ZF_TRACE_FIELD(NUMBER, began)
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(SIGNED, result)
	ZF_TRACE_FIELD(OPERATION, operation)
ZF_TRACE_END

ZF_TRACE_EVENT(20, command_submitted, "A command goes to the device.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, bytes)
	ZF_TRACE_FIELD(COMMAND, command)
	ZF_TRACE_FIELD(PURPOSE, purpose)
	ZF_TRACE_FIELD(FLAG, fua)
ZF_TRACE_END
ZF_TRACE_EVENT(21, command_completed, "The command has completed; `submitted` is the sequence of its submission.")
	ZF_TRACE_FIELD(NUMBER, submitted)
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, bytes)
	ZF_TRACE_FIELD(SIGNED, result)
	ZF_TRACE_FIELD(COMMAND, command)
	ZF_TRACE_FIELD(PURPOSE, purpose)
	ZF_TRACE_FIELD(FLAG, fua)
ZF_TRACE_END

ZF_TRACE_EVENT(30, zone, "A zone that is not empty, as it was when the trace began.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, written)
	ZF_TRACE_FIELD(NUMBER, live)
	ZF_TRACE_FIELD(NUMBER, resets)
	ZF_TRACE_FIELD(ROLE, role)
ZF_TRACE_END
ZF_TRACE_EVENT(31, zone_role, "A zone has another role.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(ROLE, role)
	ZF_TRACE_FIELD(ROLE, before)
ZF_TRACE_END
ZF_TRACE_EVENT(32, zone_live, "The live bytes of a zone have changed.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, live)
ZF_TRACE_END
ZF_TRACE_EVENT(33, zone_reset, "A zone was reset, or could not be.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, resets)
	ZF_TRACE_FIELD(SIGNED, result)
ZF_TRACE_END
ZF_TRACE_EVENT(34, zone_finished, "A zone was finished before it was full, or could not be.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(SIGNED, result)
ZF_TRACE_END

ZF_TRACE_EVENT(40, extent_fixed, "Data has landed: its extent is where the completion says.")
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(NUMBER, offset)
	ZF_TRACE_FIELD(NUMBER, bytes)
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, submitted)
ZF_TRACE_END
ZF_TRACE_EVENT(41, extents_merged, "Two extents, adjacent in the file and on the device, become this one.")
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(NUMBER, offset)
	ZF_TRACE_FIELD(NUMBER, bytes)
	ZF_TRACE_FIELD(ADDRESS, address)
ZF_TRACE_END
ZF_TRACE_EVENT(42, extent_set, "The item of an extent was put into the tree; it replaces any item with its offset.")
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(NUMBER, offset)
	ZF_TRACE_FIELD(NUMBER, bytes)
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(EXTENT, type)
ZF_TRACE_END
ZF_TRACE_EVENT(43, extent_removed, "The item of an extent is not in the tree any more.")
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(NUMBER, offset)
ZF_TRACE_END

ZF_TRACE_EVENT(50, transaction_joined, "An operation joins the running transaction.")
	ZF_TRACE_FIELD(NUMBER, generation)
	ZF_TRACE_FIELD(NUMBER, items)
ZF_TRACE_END
ZF_TRACE_EVENT(51, transaction_frozen, "A transaction takes no more joins; the next one runs.")
	ZF_TRACE_FIELD(NUMBER, generation)
	ZF_TRACE_FIELD(NUMBER, log_sequence)
	ZF_TRACE_FIELD(NUMBER, log_number)
ZF_TRACE_END
ZF_TRACE_EVENT(52, node_sealed, "A node of the frozen transaction has its checksum, and changes no more.")
	ZF_TRACE_FIELD(NUMBER, generation)
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(ADDRESS, second)
	ZF_TRACE_FIELD(NUMBER, items)
	ZF_TRACE_FIELD(TREE, tree)
	ZF_TRACE_FIELD(NUMBER8, level)
ZF_TRACE_END
ZF_TRACE_EVENT(53, tree_sealed, "All nodes of a tree are sealed; address and level are those of its root.")
	ZF_TRACE_FIELD(NUMBER, generation)
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(TREE, tree)
	ZF_TRACE_FIELD(NUMBER8, level)
ZF_TRACE_END
ZF_TRACE_EVENT(54, hole_written, "Zeroes are written instead of a node that was freed before its write, or where no node fits.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, bytes)
ZF_TRACE_END
ZF_TRACE_EVENT(55, committed, "The commit point: the superblock record is durable.")
	ZF_TRACE_FIELD(NUMBER, generation)
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(ADDRESS, root)
	ZF_TRACE_FIELD(NUMBER, log_sequence)
	ZF_TRACE_FIELD(NUMBER, log_number)
ZF_TRACE_END

ZF_TRACE_EVENT(60, log_appended, "A record of the intent log is on the device.")
	ZF_TRACE_FIELD(NUMBER, log_sequence)
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, bytes)
	ZF_TRACE_FIELD(NUMBER32, bodies)
	ZF_TRACE_FIELD(NUMBER32, data_blocks)
	ZF_TRACE_FIELD(NUMBER, submitted)
ZF_TRACE_END
ZF_TRACE_EVENT(61, log_replayed, "Recovery has replayed one body of a log record.")
	ZF_TRACE_FIELD(NUMBER, log_number)
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(BODY, type)
ZF_TRACE_END

ZF_TRACE_EVENT(70, victim_chosen, "Reclaim begins to move the live bytes of a zone elsewhere.")
	ZF_TRACE_FIELD(ADDRESS, address)
	ZF_TRACE_FIELD(NUMBER, live)
	ZF_TRACE_FIELD(NUMBER, written)
	ZF_TRACE_FIELD(ROLE, role)
ZF_TRACE_END
ZF_TRACE_EVENT(71, block_moved, "Reclaim has copied a block to another zone; no file names the copy yet.")
	ZF_TRACE_FIELD(ADDRESS, from)
	ZF_TRACE_FIELD(ADDRESS, to)
	ZF_TRACE_FIELD(NUMBER, submitted)
ZF_TRACE_END
ZF_TRACE_EVENT(72, block_swapped, "A file names a moved block at its new place.")
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(NUMBER, offset)
	ZF_TRACE_FIELD(ADDRESS, from)
	ZF_TRACE_FIELD(ADDRESS, to)
ZF_TRACE_END
ZF_TRACE_EVENT(73, block_dropped, "A moved block is given up: the file has changed there meanwhile.")
	ZF_TRACE_FIELD(NUMBER, inode)
	ZF_TRACE_FIELD(NUMBER, offset)
	ZF_TRACE_FIELD(ADDRESS, from)
	ZF_TRACE_FIELD(ADDRESS, to)
ZF_TRACE_END

/* clang-format on */
#undef ZF_TRACE_EVENT
#undef ZF_TRACE_FIELD
#undef ZF_TRACE_END
