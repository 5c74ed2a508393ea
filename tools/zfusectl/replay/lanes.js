// SPDX-License-Identifier: MIT
/* Draws operations, the commands that they caused, and the events that followed. */
"use strict";

const COLUMN = 12, LEFT = 84, BAR = {few: 5, tall: 13, least: 3};
const RAIL_Y = {operation: 8, submitted: 95, completed: 150, files: 185, commit: 208, zones: 231};

/* Bars are flatter if more operations run at once. `tall`: height of a bar; `lower`: how far all below moves down. */
function barSizes() {
	const tall = Math.max(BAR.least, Math.min(BAR.tall, Math.floor(160 / mostAtOnce)));
	return {tall, lower: Math.max(0, mostAtOnce * tall - BAR.few * BAR.tall)};
}

const railY = (rail) => RAIL_Y[rail] + (rail === "operation" ? 0 : barSizes().lower);

/* The indexes of the beginnings of all bars that begin or end in these columns, or are `underWay` now. */
function bars(first, last, begins, underWay) {
	const found = new Set([...underWay.values()].map((event) => event.index));
	for (let i = first; i <= last; i++) {
		const name = trace.event(i).event;
		if (name === begins) found.add(i);
		else if (trace.partner[i] >= 0 && trace.event(trace.partner[i]).event === begins) found.add(Math.min(i, trace.partner[i]));
	}
	return [...found].sort((a, b) => a - b);
}

/* Draws each operation in the first free row, so operations that run at the same time are below each other. */
function drawOperations(pen, first, last, x) {
	const free = [], {tall} = barSizes();
	for (const i of bars(first, last, "operation_began", model.state.operations)) {
		const end = trace.partner[i] < 0 ? last + 1 : trace.partner[i], event = trace.event(i);
		let row = free.findIndex((until) => until < i);
		if (row < 0) row = free.length;
		free[row] = end;
		const from = Math.max(LEFT, x(i) - COLUMN / 2 + 1), y = RAIL_Y.operation + 8 + row * tall;
		const wide = Math.max(COLUMN, x(end) + COLUMN / 2 - from);
		pen.globalAlpha = i >= model.position ? 0.4 : 1;
		box(pen, palette.line, from, y - 5, wide, tall - 2 + (tall < BAR.tall));
		for (const index of [i, end]) if (index >= first && index <= last) drawn.lanes.marks.add(index);
		if (tall < BAR.tall - 3) continue;
		pen.save();
		pen.beginPath();
		pen.rect(from, y - 6, wide, tall);
		pen.clip();
		text(pen, palette.text, event.operation + (event.inode ? ` ${event.inode}` : ""), from + 2, y);
		pen.restore();
	}
	pen.globalAlpha = 1;
}

function drawCommands(pen, first, last, x) {
	pen.save();
	pen.beginPath();
	pen.rect(LEFT, 0, pen.canvas.width, pen.canvas.height);
	pen.clip();
	for (const i of bars(first, last, "command_submitted", model.state.commands)) {
		const event = trace.event(i), end = trace.partner[i], colour = palette[COLOURS[event.purpose]] ?? palette.faint;
		const known = end >= 0 && end < model.position;
		pen.globalAlpha = i >= model.position ? 0.35 : 1;
		if (trace.cause[i] >= first) line(pen, palette.line, x(i), RAIL_Y.operation + 8, x(i), railY("submitted"), 1, [1, 2]);
		const [wide, dash] = [event.command === "append" ? 2.5 : 1.2, known ? [] : [4, 3]];
		line(pen, colour, x(i), railY("submitted"), x(end < 0 ? last + 1 : end), railY("completed"), wide, dash);
	}
	pen.restore();
}

function drawMarks(pen, first, last, x) {
	for (let i = first; i <= last; i++) {
		const event = trace.event(i), {rail, mark} = describe(event, trace);
		const colour = i === model.position - 1 ? palette.now : palette.text, y = railY(rail);
		pen.globalAlpha = i >= model.position ? 0.35 : 1;
		/* An operation is drawn as a bar, so only an end whose beginning is not in the trace gets a mark. */
		if (!/^operation_/.test(event.event) || (event.event === "operation_ended" && trace.partner[i] < 0)) {
			text(pen, colour, mark, x(i), y, "center");
			drawn.lanes.marks.add(i);
		}
		const fixed = event.submitted ? trace.indexOf(event.submitted) : -1;
		if (rail === "files" && fixed >= first && trace.partner[fixed] >= first)
			line(pen, palette.line, x(trace.partner[fixed]), railY("completed") + 6, x(i), y - 7);
	}
	pen.globalAlpha = 1;
}

function drawLanes() {
	const {pen, width, height} = clear("lanes", 245 + barSizes().lower), columns = Math.floor((width - LEFT) / COLUMN);
	const first = Math.max(0, Math.min(model.position - Math.round(columns * 0.7), trace.count - columns));
	const last = Math.min(trace.count, first + columns) - 1;
	const x = (index) => LEFT + (index - first + 0.5) * COLUMN;
	for (const rail of RAILS) {
		text(pen, palette.faint, rail, 0, railY(rail) + (rail === "operation" ? 8 : 0));
		if (rail !== "operation") line(pen, palette.line, LEFT, railY(rail), width, railY(rail), 0.5);
	}
	drawn.lanes = {first, last, marks: new Set()}; // events
	drawOperations(pen, first, last, x);
	drawCommands(pen, first, last, x);
	drawMarks(pen, first, last, x);
	if (model.position > 0) line(pen, palette.now, x(model.position - 1) + COLUMN / 2, 0, x(model.position - 1) + COLUMN / 2, height);
	const {operations, commands} = model.state;
	$("lanes").setAttribute("aria-label", `${operations.size} operations are under way, ${commands.size} commands in flight`);
}

/* The event whose column is at x. */
const columnAt = (x) => Math.min(drawn.lanes.last, drawn.lanes.first + Math.floor((x - LEFT) / COLUMN));
