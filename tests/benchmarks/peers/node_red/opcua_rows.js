// A function node: each change of a value is a message, and those with one time become a row of two columns.
if (msg.column === undefined) return; // the client tells of its subscription first
const rows = context.get("rows") ?? new Map();
if (!context.get("rows")) node.log("subscribed");
context.set("rows", rows);

const time = new Date(msg.sourceTimestamp).getTime() * 1000 + Math.floor(msg.sourcePicoseconds / 1e6);
const row = rows.get(time) ?? {};
const whole = Array.isArray(msg.payload); // 64 bits: the higher half, the lower half
row[msg.column] = whole ? msg.payload[0] * 2 ** 32 + msg.payload[1] : msg.payload;
if (Object.keys(row).length < 2) {
  rows.set(time, row);
  return;
}
rows.delete(time);
context.get("put")(JSON.stringify({ time, values: row, quality: "Good" }));
