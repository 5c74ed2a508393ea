// SPDX-License-Identifier: MIT
/* For a page in a browser: goes through the whole trace, one width of the lanes at a time. Returns events without a mark. */
function unmarked() {
	const {trace} = replay, marked = new Set();
	for (let position = 0; ; ) {
		replay.go(position);
		for (const index of replay.drawn.lanes.marks) marked.add(index);
		if (replay.drawn.lanes.last >= trace.count - 1) break;
		position = Math.max(position + 1, replay.drawn.lanes.last);
	}
	return Array.from({length: trace.count}, (_, i) => i).filter((i) => !marked.has(i)).slice(0, 20);
}
