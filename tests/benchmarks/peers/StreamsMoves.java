import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * A running count of each key, exactly once, in a process that can be closed while another one takes over.
 * args: bootstrap appId stateDir owner inTopic outTopic blobBytes [key=value ...]
 * in: "lags", "close", "quit". out: "STATE x", "LAGS lag active standby" (-1 without a store), "CLOSED ms".
 * An output is owner|key|count|number of the event|1 if the key's blob is what it was.
 */
public class StreamsMoves {
    static String owner;
    static int blobBytes;

    static class Count implements Processor<byte[], byte[], byte[], byte[]> {
        final Set<ByteBuffer> seen = new HashSet<>();
        ProcessorContext<byte[], byte[]> context;
        KeyValueStore<byte[], byte[]> counts, blobs;

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            this.context = context;
            counts = context.getStateStore("counts");
            blobs = context.getStateStore("blobs");
        }

        @Override
        public void process(Record<byte[], byte[]> row) {
            byte[] before = counts.get(row.key());
            long count = (before == null ? 0 : ByteBuffer.wrap(before).getLong()) + 1;
            counts.put(row.key(), ByteBuffer.allocate(8).putLong(count).array());
            boolean intact = true;
            if (blobBytes > 0) {
                if (count == 1) blobs.put(row.key(), blob(row.key()));
                // A process compares it when it first sees the key: did it come along?
                else if (seen.add(ByteBuffer.wrap(row.key()))) intact = Arrays.equals(blobs.get(row.key()), blob(row.key()));
            }
            String text = owner + "|" + new String(row.key(), StandardCharsets.US_ASCII) + "|" + count + "|"
                + new String(row.value(), StandardCharsets.US_ASCII) + "|" + (intact ? 1 : 0);
            context.forward(row.withValue(text.getBytes(StandardCharsets.US_ASCII)));
        }
    }

    /** Cannot be compressed, and is different for each key. */
    static byte[] blob(byte[] key) {
        byte[] bytes = new byte[blobBytes];
        new Random(Arrays.hashCode(key)).nextBytes(bytes);
        return bytes;
    }

    static StoreBuilder<KeyValueStore<byte[], byte[]>> store(String name) {
        return Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore(name), Serdes.ByteArray(), Serdes.ByteArray())
            .withLoggingEnabled(Map.of()).withCachingDisabled();
    }

    static Properties settings(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", args[1]);
        settings.put("state.dir", args[2]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("num.stream.threads", "1");
        settings.put("replication.factor", "1");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("default.key.serde", Serdes.ByteArraySerde.class);
        settings.put("default.value.serde", Serdes.ByteArraySerde.class);
        for (String each : Arrays.copyOfRange(args, 7, args.length)) {
            String value = each.substring(each.indexOf('=') + 1);
            boolean logical = value.equals("true") || value.equals("false");
            settings.put(each.substring(0, each.indexOf('=')), logical ? Boolean.valueOf(value) : value);
        }
        return settings;
    }

    static void lags(KafkaStreams streams) {
        long lag = -1;
        for (Map<Integer, LagInfo> partitions : streams.allLocalStorePartitionLags().values()) {
            for (LagInfo each : partitions.values()) lag = Math.max(0, lag) + each.offsetLag();
        }
        int active = 0, standby = 0;
        for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
            active += thread.activeTasks().size();
            standby += thread.standbyTasks().size();
        }
        say("LAGS " + lag + " " + active + " " + standby);
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        owner = args[3];
        blobBytes = Integer.parseInt(args[6]);
        Topology topology = new Topology();
        topology.addSource("in", args[4]).addProcessor("count", Count::new, "in")
            .addStateStore(store("counts"), "count").addStateStore(store("blobs"), "count")
            .addSink("out", args[5], "count");
        KafkaStreams streams = new KafkaStreams(topology, settings(args));
        streams.setStateListener((now, before) -> say("STATE " + now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                .StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("quit"); ) {
            if (line.equals("lags")) lags(streams);
            if (line.equals("close")) {
                long begin = System.nanoTime();
                streams.close(Duration.ofSeconds(60));
                say("CLOSED " + (System.nanoTime() - begin) / 1_000_000);
            }
        }
        Runtime.getRuntime().halt(0);
    }
}
