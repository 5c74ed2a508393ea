// SPDX-License-Identifier: MIT
/* Shows the current state (log, superblocks, transactions, trees, extents), and the curves over the whole trace. */
"use strict";

const LINES = 8;
const newest = (map, key) => [...map.values()].sort((a, b) => b[key] - a[key]).slice(0, LINES);

function drawLog(state) {
	const next = replayable(state), durable = state.superblock?.log_sequence ?? 0;
	$("log-said").textContent = `Records that a mount would replay: ${next.length}, those above number ${durable} up to the first gap.`;
	rows("log", ["record", "place", "bytes", "bodies", "data blocks"], newest(state.records, "log_sequence").map((e) => ({
		cells: [e.log_sequence, place(trace, e.address), size(e.bytes), e.bodies, e.data_blocks],
		state: next.includes(e) ? "now" : "past",
	})));
}

function drawRing(state) {
	rows("ring", ["generation", "place", "root", "log up to"], newest(state.ring, "generation").map((e) => ({
		cells: [e.generation, place(trace, e.address), place(trace, e.root), e.log_sequence],
		state: e === state.superblock ? "now" : "past",
	})));
}

const phase = (t) => (t.committed ? "durable" : t.frozen ? "frozen" : t.joins ? "running" : "");

function drawTransactions(state) {
	const transactions = newest(state.transactions, "generation");
	rows("transactions", ["generation", "is", "joins", "nodes", "holes"], transactions.map((t) => ({
		cells: [t.generation, phase(t), t.joins, t.nodes, t.holes],
		state: t.committed ? "past" : "now",
	})));
}

function drawTrees(state) {
	const transaction = newest(state.transactions, "generation").find((t) => t.trees.size);
	const at = (address, unknown) => (address === null ? unknown : address ? place(trace, address) : "none");
	$("trees-said").textContent = transaction ? `Of transaction ${transaction.generation}, which is ${phase(transaction)}.`
		: "No transaction has sealed its nodes yet.";
	rows("trees", ["tree", "nodes copied", "root before", "root after"], [...(transaction?.trees ?? [])].map(([name, tree]) => ({
		cells: [name, tree.nodes, at(tree.before, tree.root === null ? "" : "not in the trace"), at(tree.root, "not sealed yet")],
		state: tree.root === null || tree.root !== tree.before ? "now" : "past",
	})));
}

/* ---- the stream of nodes ---- */

const STREAM = {wide: 60, tall: 34, most: 400};

/* The blocks of metadata that the newest transaction writes, in the order of addresses: nodes, and holes between them. */
function drawStream(state) {
	const transaction = newest(state.transactions, "generation").find((t) => t.stream.size);
	const pieces = [...(transaction?.stream.values() ?? [])].sort((a, b) => a.address - b.address).slice(0, STREAM.most);
	const columns = Math.max(1, Math.floor(($("stream").clientWidth || 800) / STREAM.wide));
	const {pen} = clear("stream", Math.max(1, Math.ceil(pieces.length / columns)) * STREAM.tall);
	pieces.forEach((piece, i) => {
		const x = (i % columns) * STREAM.wide, y = Math.floor(i / columns) * STREAM.tall, isHole = piece.event === "hole_written";
		const isRoot = !isHole && transaction.trees.get(piece.tree)?.root === piece.address;
		if (isHole) hatch(pen, palette.line, x + 1, y + 2, STREAM.wide - 4, STREAM.tall - 6);
		pen.strokeStyle = isHole ? palette.faint : palette.meta;
		pen.lineWidth = isRoot ? 3 : 1;
		pen.strokeRect(x + 1.5, y + 2.5, STREAM.wide - 5, STREAM.tall - 7);
		text(pen, palette.text, isHole ? "hole" : piece.tree, x + 5, y + 11);
		text(pen, palette.faint, isHole ? size(piece.bytes).replace(" ", "") : `level ${piece.level}`, x + 5, y + 23);
	});
	const holes = pieces.filter(({event}) => event === "hole_written").length;
	drawn.stream = {nodes: pieces.length - holes, holes};
	$("stream-said").textContent = transaction ? `Transaction ${transaction.generation}: ${many(transaction.nodes, "node")} and ` +
		`${many(transaction.holes, "hole")}.` : "No transaction has sealed its nodes yet.";
	const words = pieces.map((piece) => (piece.tree ? `${piece.tree} level ${piece.level}` : "hole"));
	$("stream").setAttribute("aria-label", words.join(", ") || "nothing yet");
}

function drawExtents(state) {
	const extents = extentsOf(state, selected.inode);
	show("inode", selected.inode || "");
	rows("extents", ["offset", "bytes", "type", "place", "submitted as"], extents.slice(0, 40).map((e) => {
		const zone = e.type === "data" && state.zones.get(trace.zoneOf(e.address)), piece = zone && zone.pieces.get(e.address);
		const at = e.type === "data" ? place(trace, e.address) : "";
		return {cells: [number(e.offset), number(e.bytes), e.type, at, piece?.order || ""]};
	}).concat(extents.length > 40 ? [{cells: [`and ${extents.length - 40} more`]}] : []));
}

/* ---- curves ---- */

const duration = (time) => (trace.header.clock ? `${number(time)} events` : `${(time / 1e6).toFixed(2)} ms`);
/* [name, key in a sample, colour, words] */
const CURVES = [
	["write amplification", "amplification", "log", (value) => value.toFixed(2)],
	["empty zones", "empty", "meta", number],
	["slowest operation", "latency", "hot", duration],
];

function drawCurves(state) {
	const tall = 56, {pen, width} = clear("curves", CURVES.length * tall), long = width - LEFT * 2;
	const x = (index) => LEFT * 2 + (index / Math.max(1, trace.count - 1)) * (long - 2);
	CURVES.forEach(([name, key, colour, say], i) => {
		const known = samples.filter((sample) => sample[key] !== null);
		const most = Math.max(1e-9, ...known.map((sample) => sample[key]));
		const y = (value) => (i + 1) * tall - 6 - (value / most) * (tall - 14);
		text(pen, palette.text, name, 0, i * tall + 16);
		text(pen, palette.faint, `at most ${known.length ? say(most) : "?"}`, 0, i * tall + 32);
		pen.strokeStyle = palette[colour];
		pen.lineWidth = 2;
		pen.beginPath();
		for (const sample of known) pen.lineTo(x(sample.at), y(sample[key]));
		pen.stroke();
		line(pen, palette.line, LEFT * 2, y(0), width, y(0));
	});
	if (model.position) line(pen, palette.now, x(model.position - 1), 0, x(model.position - 1), CURVES.length * tall);
	drawn.curves = {left: LEFT * 2, long};
	const now = amplification(state);
	$("curves").setAttribute("aria-label", `Now: write amplification ${now ? now.toFixed(2) : "not known"}, ` +
		`${emptyZones(state, trace.header)} empty zones, the last operation took ${duration(state.latency)}`);
}
