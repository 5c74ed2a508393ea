// SPDX-License-Identifier: MIT
/* Aligns two traces that are shown side by side. This file uses no DOM. */
"use strict";

/* Results of operations that are done again, so their ends do not count. */
const EAGAIN = -11, EINPROGRESS = -115;

/* For each operation of a trace, in the order of their beginnings: the number of events up to its end. */
function operationEnds(trace) {
	const ends = [];
	for (let i = 0; i < trace.count; i++) {
		const event = trace.event(i);
		if (event.event !== "operation_began" || trace.partner[i] < 0) continue;
		const ended = trace.event(trace.partner[i]);
		if (ended.result !== EAGAIN && ended.result !== EINPROGRESS) ends.push(Math.max(ended.index + 1, ends.at(-1) ?? 0));
	}
	return ends;
}

/*
 * The steps of the two traces: positions[side][step] is the number of events of that side up to that step. A step adds at
 * most one event on each side. Only by time may it add several: those with the same time.
 */
class Alignment {
	/* by: "operation", "time" */
	constructor(traces, by) {
		this.positions = [[0], [0]];
		this.operations = [0, 0];
		if (by === "time") this.byTime(traces);
		else this.byOperation(traces);
		this.count = this.positions[0].length - 1;
	}

	/* Both sides reach the end of the same operation at the same step. The events between two ends are spread evenly. */
	byOperation(traces) {
		const ends = traces.map(operationEnds);
		this.operations = ends.map((list) => list.length);
		for (let i = 0; i < Math.max(...this.operations); i++) this.advance(ends.map((list, side) => list[i] ?? this.at(side)));
		this.advance(traces.map(({count}) => count));
	}

	at(side) { return this.positions[side].at(-1); }

	advance(to) {
		const from = [this.at(0), this.at(1)], steps = Math.max(to[0] - from[0], to[1] - from[1]);
		for (let i = 1; i <= steps; i++)
			for (const side of [0, 1]) this.positions[side].push(from[side] + Math.floor(((to[side] - from[side]) * i) / steps));
	}

	/* Aligns by the time since the first event of each trace. */
	byTime(traces) {
		const begins = traces.map((trace) => (trace.count ? trace.time(0) : 0)), next = [0, 0];
		const due = (side) => (next[side] < traces[side].count ? traces[side].time(next[side]) - begins[side] : Infinity);
		while (next[0] < traces[0].count || next[1] < traces[1].count) {
			const now = Math.min(due(0), due(1));
			for (const side of [0, 1]) {
				while (due(side) <= now) next[side]++;
				this.positions[side].push(next[side]);
			}
		}
	}

	/* The first step up to which this side has at least `position` events. */
	stepOf(side, position) {
		const positions = this.positions[side];
		let low = 0, high = this.count;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (positions[middle] < position) low = middle + 1;
			else high = middle;
		}
		return low;
	}
}
