// On start of a function node that gives rows to Kafka: it has a producer before the first message comes.
// One request is on its way at a time, with all that has come meanwhile.
const ROWS_MAX = 5000;
const topic = env.get("TOPIC");
const producer = global.get("kafka").producer({ allowAutoTopicCreation: false });
let waiting = [];
let sending = false;

async function send() {
  sending = true;
  while (waiting.length > 0) {
    const taken = waiting.slice(0, ROWS_MAX);
    try {
      await producer.send({ topic, acks: -1, compression: global.get("zstd"), messages: taken });
      waiting = waiting.slice(taken.length);
      taken.forEach((each) => each.stored?.());
    } catch (error) {
      node.warn(`Kafka: ${error.message}`); // the rows wait for the next turn
      await new Promise((later) => setTimeout(later, 100));
    }
  }
  sending = false;
}

// `stored` is called when Kafka has the row, and those before it.
function put(value, stored) {
  waiting.push({ value, timestamp: `${Date.now()}`, stored });
  if (!sending) send();
}

await global.get("begun");
await producer.connect();
context.set("put", put);
node.log("ready");
