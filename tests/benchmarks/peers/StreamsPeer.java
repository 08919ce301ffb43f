import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * One work on Kafka Streams, exactly once, JSON in and out, by the Processor API with cached stores in RocksDB.
 * args: bootstrap appId stateDir inTopic outTopic work count warm threads [key=value ...]
 * A chain is three sub-topologies: the topics between them are outTopic-1 and outTopic-2.
 */
public class StreamsPeer {
    static Rows.Progress progress;

    abstract static class Element implements Processor<byte[], byte[], byte[], byte[]> {
        ProcessorContext<byte[], byte[]> context;
        boolean last = true;

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            this.context = context;
        }

        @Override
        public void process(Record<byte[], byte[]> row) {
            try {
                each(row, Rows.parse(row.value()));
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
            if (last) progress.event();
        }

        abstract void each(Record<byte[], byte[]> row, Rows.Event event) throws Exception;

        Element inTheMiddle() {
            last = false;
            return this;
        }
    }

    abstract static class Stateful extends Element {
        KeyValueStore<byte[], byte[]> store;

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            super.init(context);
            store = context.getStateStore("store");
        }
    }

    static class Filter extends Element {
        @Override
        void each(Record<byte[], byte[]> row, Rows.Event event) {
            if (event.n % 10 == 0) context.forward(row);
        }
    }

    static class Twice extends Element {
        @Override
        void each(Record<byte[], byte[]> row, Rows.Event event) throws Exception {
            event.twice = event.value * 2;
            context.forward(row.withValue(Rows.event(event, false)));
        }
    }

    static class Difference extends Stateful {
        @Override
        void each(Record<byte[], byte[]> row, Rows.Event event) throws Exception {
            byte[] before = store.get(row.key());
            if (before != null) event.made = event.value - ByteBuffer.wrap(before).getDouble();
            store.put(row.key(), ByteBuffer.allocate(8).putDouble(event.value).array());
            context.forward(row.withValue(Rows.event(event, true)));
        }
    }

    /** Statistics of each sensor, 48 bytes of state. */
    static class Keyed extends Stateful {
        @Override
        void each(Record<byte[], byte[]> row, Rows.Event event) throws Exception {
            byte[] stored = store.get(row.key());
            double[] state = stored == null ? Rows.noStatistics() : numbers(stored);
            if (Rows.due(state, row.timestamp())) {
                context.forward(row.withValue(Rows.report(event.sensor, state)));
                state[1] = 0;
            }
            Rows.add(state, event.value, row.timestamp());
            store.put(row.key(), bytes(state));
        }
    }

    /** Sums of each pane and sensor. A window is put together when the time of the stream comes to its end. */
    static class Windows extends Stateful {
        static final byte[] BOUNDARY = {0};
        final long pane;
        long boundary = -1;

        Windows(long pane) {
            this.pane = pane;
        }

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            super.init(context);
            byte[] stored = store.get(BOUNDARY);
            if (stored != null) boundary = ByteBuffer.wrap(stored).getLong();
        }

        @Override
        void each(Record<byte[], byte[]> row, Rows.Event event) {
            long start = row.timestamp() / pane * pane;
            if (boundary < 0) next(start + pane);
            while (row.timestamp() >= boundary) {
                close(boundary);
                next(boundary + pane);
            }
            byte[] name = name(start, row.key());
            byte[] stored = store.get(name);
            double[] sums = stored == null ? Rows.noSums() : numbers(stored);
            Rows.sum(sums, 1, event.value, event.value);
            store.put(name, bytes(sums));
        }

        private void next(long end) {
            boundary = end;
            store.put(BOUNDARY, ByteBuffer.allocate(8).putLong(end).array());
        }

        private void close(long end) {
            Map<String, double[]> windows = new TreeMap<>();
            long begin = end - Rows.WINDOW_MS;
            try (KeyValueIterator<byte[], byte[]> panes = store.range(name(begin, new byte[0]), name(end, new byte[0]))) {
                while (panes.hasNext()) {
                    KeyValue<byte[], byte[]> each = panes.next();
                    double[] part = numbers(each.value);
                    String sensor = new String(each.key, 8, each.key.length - 8);
                    Rows.sum(windows.computeIfAbsent(sensor, any -> Rows.noSums()), part[0], part[1], part[2]);
                    if (ByteBuffer.wrap(each.key).getLong() == begin) store.delete(each.key);
                }
            }
            windows.forEach((sensor, sums) -> {
                try {
                    context.forward(new Record<>(sensor.getBytes(), Rows.window(sensor, begin, sums), end));
                } catch (java.io.IOException error) {
                    throw new java.io.UncheckedIOException(error);
                }
            });
        }

        private static byte[] name(long start, byte[] key) {
            return ByteBuffer.allocate(8 + key.length).putLong(start).put(key).array();
        }
    }

    static byte[] bytes(double[] numbers) {
        ByteBuffer buffer = ByteBuffer.allocate(8 * numbers.length);
        for (double each : numbers) buffer.putDouble(each);
        return buffer.array();
    }

    static double[] numbers(byte[] bytes) {
        double[] numbers = new double[bytes.length / 8];
        ByteBuffer.wrap(bytes).asDoubleBuffer().get(numbers);
        return numbers;
    }

    static void add(Topology topology, String from, Supplier<Element> element, String to) {
        String name = from + "-element";
        topology.addSource(from, from).addProcessor(name, element::get, from);
        if (element.get() instanceof Stateful) {
            topology.addStateStore(
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("store"), Serdes.ByteArray(), Serdes.ByteArray())
                    .withLoggingEnabled(Map.of()).withCachingEnabled(), name);
        }
        topology.addSink(to + "-sink", to, name);
    }

    static Topology topology(String work, String in, String out) {
        Topology topology = new Topology();
        switch (work) {
            case "filter" -> add(topology, in, Filter::new, out);
            case "map" -> add(topology, in, Twice::new, out);
            case "difference" -> add(topology, in, Difference::new, out);
            case "keyed" -> add(topology, in, Keyed::new, out);
            case "windows" -> add(topology, in, () -> new Windows(Rows.WINDOW_MS), out);
            case "sliding" -> add(topology, in, () -> new Windows(Rows.SLIDE_MS), out);
            case "chain" -> {
                add(topology, in, () -> new Twice().inTheMiddle(), out + "-1");
                add(topology, out + "-1", () -> new Difference().inTheMiddle(), out + "-2");
                add(topology, out + "-2", Filter::new, out);
            }
            default -> throw new IllegalArgumentException(work);
        }
        return topology;
    }

    public static void main(String[] args) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        progress = new Rows.Progress(Long.parseLong(args[6]), Long.parseLong(args[7]), done::countDown);
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", args[1]);
        settings.put("state.dir", args[2]);
        settings.put("num.stream.threads", args[8]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("replication.factor", "1");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("default.key.serde", Serdes.ByteArraySerde.class);
        settings.put("default.value.serde", Serdes.ByteArraySerde.class);
        for (String each : Arrays.copyOfRange(args, 9, args.length)) {
            settings.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
        }
        Properties properties = new Properties();
        properties.putAll(settings);
        KafkaStreams streams = new KafkaStreams(topology(args[5], args[3], args[4]), properties);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        streams.start();
        done.await();
        Thread.sleep(1500);
        streams.close();
        Runtime.getRuntime().halt(0);
    }
}
