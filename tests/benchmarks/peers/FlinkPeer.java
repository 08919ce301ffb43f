import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * One work on Flink, exactly once, JSON in and out, in one job.
 * args: bootstrap prefix dir inTopic outTopic work count warm parallelism [flink-key=value ...] [sink.key=value ...]
 */
public class FlinkPeer {
    static Rows.Progress progress;

    /** A row: its key, its time and its text. */
    static final TypeInformation<Tuple3<String, Long, byte[]>> ROW =
        Types.TUPLE(Types.STRING, Types.LONG, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
    static final TypeInformation<Tuple3<String, Long, double[]>> SUMS =
        Types.TUPLE(Types.STRING, Types.LONG, PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO);

    public static class Reading implements KafkaRecordDeserializationSchema<Tuple3<String, Long, byte[]>> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> row, Collector<Tuple3<String, Long, byte[]>> out) {
            out.collect(Tuple3.of(new String(row.key(), StandardCharsets.US_ASCII), row.timestamp(), row.value()));
        }

        @Override
        public TypeInformation<Tuple3<String, Long, byte[]>> getProducedType() {
            return ROW;
        }
    }

    public static class Writing implements KafkaRecordSerializationSchema<Tuple3<String, Long, byte[]>> {
        final String topic;

        Writing(String topic) {
            this.topic = topic;
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(
            Tuple3<String, Long, byte[]> row, KafkaSinkContext context, Long timestamp) {
            return new ProducerRecord<>(topic, null, row.f1, row.f0.getBytes(StandardCharsets.US_ASCII), row.f2);
        }
    }

    public static class Filter implements FlatMapFunction<Tuple3<String, Long, byte[]>, Tuple3<String, Long, byte[]>> {
        @Override
        public void flatMap(Tuple3<String, Long, byte[]> row, Collector<Tuple3<String, Long, byte[]>> out)
            throws Exception {
            if (Rows.parse(row.f2).n % 10 == 0) out.collect(row);
            progress.event();
        }
    }

    public static class Twice implements FlatMapFunction<Tuple3<String, Long, byte[]>, Tuple3<String, Long, byte[]>> {
        @Override
        public void flatMap(Tuple3<String, Long, byte[]> row, Collector<Tuple3<String, Long, byte[]>> out)
            throws Exception {
            Rows.Event event = Rows.parse(row.f2);
            event.twice = event.value * 2;
            out.collect(Tuple3.of(row.f0, row.f1, Rows.event(event, false)));
            progress.event();
        }
    }

    /** The difference. `chained`: the three elements of the chain, as Flink would put them into one task. */
    public static class Difference
        extends KeyedProcessFunction<String, Tuple3<String, Long, byte[]>, Tuple3<String, Long, byte[]>> {
        final boolean chained;
        transient ValueState<Double> before;

        Difference(boolean chained) {
            this.chained = chained;
        }

        @Override
        public void open(OpenContext context) {
            before = getRuntimeContext().getState(new ValueStateDescriptor<>("before", Types.DOUBLE));
        }

        @Override
        public void processElement(
            Tuple3<String, Long, byte[]> row, Context context, Collector<Tuple3<String, Long, byte[]>> out)
            throws Exception {
            Rows.Event event = Rows.parse(row.f2);
            if (chained) event.twice = event.value * 2;
            Double earlier = before.value();
            if (earlier != null) event.made = event.value - earlier;
            before.update(event.value);
            if (!chained || event.n % 10 == 0) out.collect(Tuple3.of(row.f0, row.f1, Rows.event(event, true)));
            progress.event();
        }
    }

    public static class Keyed
        extends KeyedProcessFunction<String, Tuple3<String, Long, byte[]>, Tuple3<String, Long, byte[]>> {
        transient ValueState<double[]> statistics;

        @Override
        public void open(OpenContext context) {
            statistics = getRuntimeContext().getState(new ValueStateDescriptor<>(
                "statistics", PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO));
        }

        @Override
        public void processElement(
            Tuple3<String, Long, byte[]> row, Context context, Collector<Tuple3<String, Long, byte[]>> out)
            throws Exception {
            double value = Rows.parse(row.f2).value;
            double[] state = statistics.value();
            if (state == null) state = Rows.noStatistics();
            if (Rows.due(state, row.f1)) {
                out.collect(Tuple3.of(row.f0, row.f1, Rows.report(row.f0, state)));
                state[1] = 0;
            }
            Rows.add(state, value, row.f1);
            statistics.update(state);
            progress.event();
        }
    }

    public static class Summing implements AggregateFunction<Tuple3<String, Long, byte[]>, double[], double[]> {
        @Override
        public double[] createAccumulator() {
            return Rows.noSums();
        }

        @Override
        public double[] add(Tuple3<String, Long, byte[]> row, double[] sums) {
            try {
                double value = Rows.parse(row.f2).value;
                Rows.sum(sums, 1, value, value);
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
            progress.event();
            return sums;
        }

        @Override
        public double[] getResult(double[] sums) {
            return sums;
        }

        @Override
        public double[] merge(double[] one, double[] other) {
            Rows.sum(one, other[0], other[1], other[2]);
            return one;
        }
    }

    public static class Joining implements AggregateFunction<Tuple3<String, Long, double[]>, double[], double[]> {
        @Override
        public double[] createAccumulator() {
            return Rows.noSums();
        }

        @Override
        public double[] add(Tuple3<String, Long, double[]> pane, double[] sums) {
            Rows.sum(sums, pane.f2[0], pane.f2[1], pane.f2[2]);
            return sums;
        }

        @Override
        public double[] getResult(double[] sums) {
            return sums;
        }

        @Override
        public double[] merge(double[] one, double[] other) {
            Rows.sum(one, other[0], other[1], other[2]);
            return one;
        }
    }

    public static class Pane extends ProcessWindowFunction<double[], Tuple3<String, Long, double[]>, String, TimeWindow> {
        @Override
        public void process(
            String key, Context context, Iterable<double[]> sums, Collector<Tuple3<String, Long, double[]>> out) {
            out.collect(Tuple3.of(key, context.window().getStart(), sums.iterator().next()));
        }
    }

    public static class Window extends ProcessWindowFunction<double[], Tuple3<String, Long, byte[]>, String, TimeWindow> {
        @Override
        public void process(
            String key, Context context, Iterable<double[]> sums, Collector<Tuple3<String, Long, byte[]>> out)
            throws Exception {
            byte[] text = Rows.window(key, context.window().getStart(), sums.iterator().next());
            out.collect(Tuple3.of(key, context.window().getEnd(), text));
        }
    }

    static DataStream<Tuple3<String, Long, byte[]>> made(String work, DataStream<Tuple3<String, Long, byte[]>> in) {
        switch (work) {
            case "filter":
                return in.flatMap(new Filter()).returns(ROW);
            case "map":
                return in.flatMap(new Twice()).returns(ROW);
            default:
        }
        KeyedStream<Tuple3<String, Long, byte[]>, String> keyed = in.keyBy(row -> row.f0, Types.STRING);
        switch (work) {
            case "difference":
                return keyed.process(new Difference(false), ROW);
            case "chain":
                return keyed.process(new Difference(true), ROW);
            case "keyed":
                return keyed.process(new Keyed(), ROW);
            case "windows":
                return keyed.window(TumblingEventTimeWindows.of(java.time.Duration.ofMillis(Rows.WINDOW_MS)))
                    .aggregate(new Summing(), new Window(), double_(), double_(), ROW);
            case "sliding":
                // Panes first: a row is added once, instead of once for each window that it lies in.
                return keyed.window(TumblingEventTimeWindows.of(java.time.Duration.ofMillis(Rows.SLIDE_MS)))
                    .aggregate(new Summing(), new Pane(), double_(), double_(), SUMS)
                    .keyBy(pane -> pane.f0, Types.STRING)
                    .window(SlidingEventTimeWindows.of(
                        java.time.Duration.ofMillis(Rows.WINDOW_MS), java.time.Duration.ofMillis(Rows.SLIDE_MS)))
                    .aggregate(new Joining(), new Window(), double_(), double_(), ROW);
            default:
                throw new IllegalArgumentException(work);
        }
    }

    static TypeInformation<double[]> double_() {
        return PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO;
    }

    static void end() {
        Thread end = new Thread(() -> {
            try {
                Thread.sleep(2500);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0);
        });
        end.start();
    }

    public static void main(String[] args) throws Exception {
        progress = new Rows.Progress(Long.parseLong(args[6]), Long.parseLong(args[7]), FlinkPeer::end);
        Configuration settings = new Configuration();
        settings.setString("rest.port", "0");
        settings.setString("execution.checkpointing.dir", "file://" + args[2] + "/checkpoints");
        settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
        settings.setString("execution.checkpointing.min-pause", "0 ms");
        settings.setString("io.tmp.dirs", args[2] + "/tmp");
        settings.setString("restart-strategy.type", "none");
        var sink = KafkaSink.<Tuple3<String, Long, byte[]>>builder().setBootstrapServers(args[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix(args[1])
            .setProperty("transaction.timeout.ms", "60000").setRecordSerializer(new Writing(args[4]));
        var source = KafkaSource.<Tuple3<String, Long, byte[]>>builder().setBootstrapServers(args[0]).setTopics(args[3])
            .setGroupId(args[1]).setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new Reading())
            .setProperty("partition.discovery.interval.ms", "-1");
        for (String each : Arrays.copyOfRange(args, 9, args.length)) {
            String name = each.substring(0, each.indexOf('='));
            String value = each.substring(each.indexOf('=') + 1);
            if (name.startsWith("sink.")) sink.setProperty(name.substring(5), value);
            else if (name.startsWith("source.")) source.setProperty(name.substring(7), value);
            else settings.setString(name, value);
        }
        int parallelism = Integer.parseInt(args[8]);
        StreamExecutionEnvironment environment =
            StreamExecutionEnvironment.createLocalEnvironment(parallelism, settings);
        environment.getConfig().enableObjectReuse();
        WatermarkStrategy<Tuple3<String, Long, byte[]>> times =
            args[5].equals("windows") || args[5].equals("sliding")
                ? WatermarkStrategy.<Tuple3<String, Long, byte[]>>forMonotonousTimestamps()
                : WatermarkStrategy.noWatermarks();
        made(args[5], environment.fromSource(source.build(), times, "in")).sinkTo(sink.build());
        environment.execute(args[1]);
    }
}
