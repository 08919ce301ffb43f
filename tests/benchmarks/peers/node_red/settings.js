// Node-RED's settings: no editor, no news from its makers, only the packages that are needed, and the client of
// Kafka for function nodes.
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require("kafkajs");
const zlib = require("node:zlib");

// Fogline's records are compressed by zstd, for which kafkajs has no codec.
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async ({ buffer }) => zlib.zstdCompressSync(buffer),
  decompress: async (buffer) => zlib.zstdDecompressSync(buffer),
});

module.exports = {
  uiHost: "127.0.0.1",
  uiPort: process.env.PORT,
  httpAdminRoot: false,
  disableEditor: true,
  credentialSecret: false,
  nodesExcludes: process.env.EXCLUDED.split(" "),
  telemetry: { enabled: false, updateNotification: false },
  logging: { console: { level: "info" } },
  mqttReconnectTime: 1000,
  functionGlobalContext: {
    begun: new Promise((begin) => process.stdin.once("data", begin)),
    zstd: CompressionTypes.ZSTD,
    // It never gives up: Node-RED keeps what waits for Kafka in memory.
    kafka: new Kafka({
      brokers: [process.env.KAFKA],
      logLevel: logLevel.ERROR,
      retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 1e9 },
    }),
  },
};
