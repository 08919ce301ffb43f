// On start of a function node that reads rows from Kafka. Of a batch it hands on 1,000 rows at a time, and
// waits until the next node has sent them: a `complete` node says that to this node's input. So the offset is
// committed only then.
const AT_ONCE = 1000;
const consumer = global.get("kafka").consumer({ groupId: env.get("TOPIC"), maxWaitTimeInMs: 20 });
let open = 0;
let goOn = null;

context.set("sent", () => {
  open -= 1;
  if (open === 0) goOn();
});

await global.get("begun");
await consumer.connect();
await consumer.subscribe({ topic: env.get("TOPIC"), fromBeginning: true });
await consumer.run({
  eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
    for (let first = 0; first < batch.messages.length; first += AT_ONCE) {
      const taken = batch.messages.slice(first, first + AT_ONCE);
      open = taken.length;
      const all = new Promise((done) => (goOn = done));
      for (const each of taken) node.send({ payload: each.value });
      await all;
      resolveOffset(taken.at(-1).offset);
      await heartbeat();
    }
  },
});
node.log("ready");
