// SPDX-License-Identifier: MIT
/* Draws the zones, and the order in which one of them was written. */
"use strict";

/* ---- the zones ---- */

const LETTERS = {none: "", super: "S", meta: "M", log: "L", hot: "H", cold: "C", overwrite: "O"};
const COLOURS = {data: "hot", nodes: "meta", holes: "faint", log: "log", superblock: "super", reclaim: "reclaim", zone: "faint"};
const ALL_ZONES = 2000, ZONES_MAX = 100000; // a device with more than ALL_ZONES zones: only the zones that the trace names

/* The size of a cell, by the number of zones: [at most so many zones, width, height, whether the cell shows its number]. */
const CELLS = [[500, 54, 38, true], [ALL_ZONES, 26, 32, false], [Infinity, 14, 26, false]];

function inFlight(state) {
	const flying = new Map();
	for (const command of state.commands.values()) {
		const zone = trace.zoneOf(command.address);
		if (command.command !== "read" && command.command !== "flush") flying.set(zone, (flying.get(zone) ?? 0) + 1);
	}
	return flying;
}

function drawZone(pen, zone, cell, flying) {
	const [x, y, width, height, hasNumber] = cell, top = y + 14, tall = height - 19, long = width - 4;
	const {zone_capacity: capacity, zone_size: zoneSize} = trace.header;
	const role = zone?.role ?? "none", colour = palette[role] ?? palette.none;
	box(pen, palette.back, x, top, long, tall);
	if (zone?.written) {
		const scale = long / capacity, written = Math.min(long, Math.max(1, scale * zone.written));
		const live = role === "super" ? tall : Math.min(tall, (tall * zone.live) / zone.written);
		hatch(pen, colour, x, top, written, tall - live);
		box(pen, colour, x, top + tall - live, written, live);
		for (const [address, bytes] of zone.holes)
			box(pen, palette.text, x + scale * (address % zoneSize), top + tall, Math.max(1, scale * bytes), 3);
		line(pen, palette.text, x + written, top - 1, x + written, top + tall + 1, 1.5);
	}
	pen.strokeStyle = zone && zone.number === selected.zone ? palette.now : palette.line;
	pen.lineWidth = 1;
	pen.strokeRect(x + 0.5, top + 0.5, long - 1, tall - 1);
	text(pen, palette.text, LETTERS[role] ?? "?", x, y + 7);
	if (hasNumber) text(pen, palette.faint, cell[5], x + 12, y + 7);
	if (zone?.victim) text(pen, palette.now, "V", x + long - 22, y + 7);
	if (flying) text(pen, palette.now, hasNumber ? `↓${flying}` : "↓", x + long, y + 7, "right");
}

function drawMap(state) {
	const [, cellWidth, cellHeight, hasNumber] = CELLS.find(([zones]) => zoneNumbers.length <= zones);
	const columns = Math.max(1, Math.floor(($("map").clientWidth || 800) / cellWidth));
	const {pen} = clear("map", Math.max(1, Math.ceil(zoneNumbers.length / columns)) * cellHeight);
	const flying = inFlight(state);
	zoneNumbers.forEach((zone, i) => {
		const cell = [(i % columns) * cellWidth, Math.floor(i / columns) * cellHeight, cellWidth, cellHeight, hasNumber, zone];
		drawZone(pen, state.zones.get(zone) ?? {number: zone, role: "none", holes: []}, cell, flying.get(zone));
	});
	drawn.map = {columns, cellWidth, cellHeight};
	const roles = [...state.zones.values()].map((zone) => zone.role);
	const counts = Object.keys(LETTERS).map((role) => `${roles.filter((r) => r === role).length} ${role}`).slice(1);
	const empty = emptyZones(state, trace.header);
	$("map").setAttribute("aria-label", `${empty} zones of ${trace.header.zone_count} are empty; ${counts.join(", ")}`);
}

function drawZonesTable(state) {
	if (!$("zones-details").open) return;
	const known = zoneNumbers.filter((zone) => state.zones.has(zone)).slice(0, 500);
	rows("zones", ["zone", "role", "written", "live", "garbage", "holes", "resets"], known.map((number) => {
		const {role, written, live, holes, resets} = state.zones.get(number);
		return {cells: [number, role, size(written), size(live), size(Math.max(0, written - live)), holes.size, resets]};
	}));
}

/* ---- one zone: submitted, and landed ---- */

function newestPieces(state, zone, room) {
	const flying = [...state.commands.values()].filter((c) => WRITING.includes(c.command) && trace.zoneOf(c.address) === zone.number);
	/* Takes only the pieces that completed last: nearly all of the newest submissions are among them. */
	const pieces = [...zone.pieces.values()].slice(-16 * room).filter((piece) => piece.order > 0);
	return [...pieces, ...flying].sort((a, b) => a.order - b.order).slice(-room);
}

function drawPiece(pen, piece, x, y, wide, hasLanded) {
	const colour = palette[COLOURS[piece.purpose]] ?? palette.faint;
	pen.strokeStyle = colour;
	pen.lineWidth = 2;
	pen.setLineDash(hasLanded ? [] : [4, 3]);
	pen.strokeRect(x + 1, y, wide - 4, 30);
	pen.setLineDash([]);
	text(pen, palette.text, `${piece.order}`, x + 6, y + 10);
	text(pen, palette.faint, size(piece.bytes).replace(" ", ""), x + wide - 7, y + 10, "right");
	text(pen, palette.text, piece.inode ? `inode ${piece.inode}` : piece.purpose, x + 6, y + 22);
}

function drawStrip(state) {
	const {pen, width} = clear("strip", 142), wide = 84, room = Math.max(1, Math.floor((width - LEFT) / wide));
	const zone = state.zones.get(selected.zone);
	show("strip-zone", selected.zone);
	text(pen, palette.faint, "submitted", 0, 18);
	text(pen, palette.faint, "landed", 0, 108);
	const pieces = zone ? newestPieces(state, zone, room) : [];
	const landed = pieces.filter((piece) => zone.pieces.get(piece.address)?.submitted === piece.submitted && piece.submitted)
		.sort((a, b) => a.address - b.address);
	pieces.forEach((piece, i) => {
		const below = landed.indexOf(piece), colour = palette[COLOURS[piece.purpose]] ?? palette.faint;
		drawPiece(pen, piece, LEFT + i * wide, 3, wide, below >= 0);
		if (below < 0) return;
		line(pen, colour, LEFT + (i + 0.5) * wide, 34, LEFT + (below + 0.5) * wide, 92, below === i ? 1 : 3);
		drawPiece(pen, piece, LEFT + below * wide, 93, wide, true);
		text(pen, palette.faint, `+ 0x${(piece.address % trace.header.zone_size).toString(16)}`, LEFT + below * wide + 2, 133);
	});
	if (!pieces.length) text(pen, palette.faint, "The trace tells of no write to this zone since its last reset.", LEFT, 18);
	const orders = (list) => list.map((piece) => piece.order).join(", ");
	$("strip").setAttribute("aria-label", `Submitted: ${orders(pieces)}. Landed, by address: ${orders(landed)}.`);
}
