import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.RecoveryClaimMode;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A running count of each key, exactly once, in a cluster that is up and waits for the job.
 * args: bootstrap name dir owner inTopic outTopic blobBytes [flink-key=value ...] [sink.key=value ...]
 * in: "start none", "start PATH" (of a savepoint or checkpoint), "stop", "quit".
 * out: "READY", "RUNNING ms", "FAILED x", "SAVEPOINT path ms".
 * An output is owner|key|count|number of the event|1 if the key's blob is what it was.
 */
public class FlinkMoves {
    static final Properties SINK = new Properties();

    public static class Reading implements KafkaRecordDeserializationSchema<Tuple2<String, String>> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> row, Collector<Tuple2<String, String>> out) {
            out.collect(Tuple2.of(
                new String(row.key(), StandardCharsets.US_ASCII), new String(row.value(), StandardCharsets.US_ASCII)));
        }

        @Override
        public TypeInformation<Tuple2<String, String>> getProducedType() {
            return Types.TUPLE(Types.STRING, Types.STRING);
        }
    }

    public static class Count extends KeyedProcessFunction<String, Tuple2<String, String>, String> {
        final String owner;
        final int blobBytes;
        transient ValueState<Long> counts;
        transient ValueState<byte[]> blobs;
        transient Set<String> seen;

        Count(String owner, int blobBytes) {
            this.owner = owner;
            this.blobBytes = blobBytes;
        }

        @Override
        public void open(OpenContext context) {
            counts = getRuntimeContext().getState(new ValueStateDescriptor<>("counts", Types.LONG));
            blobs = getRuntimeContext().getState(
                new ValueStateDescriptor<>("blobs", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
            seen = new HashSet<>();
        }

        @Override
        public void processElement(Tuple2<String, String> row, Context context, Collector<String> out) throws Exception {
            Long before = counts.value();
            long count = (before == null ? 0 : before) + 1;
            counts.update(count);
            boolean intact = true;
            if (blobBytes > 0) {
                if (count == 1) blobs.update(blob(row.f0));
                // A job compares it when it first sees the key: did it come along?
                else if (seen.add(row.f0)) intact = Arrays.equals(blobs.value(), blob(row.f0));
            }
            out.collect(owner + "|" + row.f0 + "|" + count + "|" + row.f1 + "|" + (intact ? 1 : 0));
        }

        /** Cannot be compressed, and is different for each key. */
        byte[] blob(String key) {
            byte[] bytes = new byte[blobBytes];
            new Random(key.hashCode()).nextBytes(bytes);
            return bytes;
        }
    }

    static Configuration settings(String[] args) {
        String directory = args[2];
        Configuration settings = new Configuration();
        settings.setString("rest.port", "0");
        settings.setString("rest.bind-port", "0");
        settings.setString("execution.checkpointing.incremental", "true");
        settings.setString("execution.checkpointing.dir", "file://" + directory + "/checkpoints");
        settings.setString("execution.checkpointing.savepoint-dir", "file://" + directory + "/savepoints");
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("execution.checkpointing.min-pause", "0 ms");
        settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
        settings.setString("io.tmp.dirs", directory + "/tmp-" + args[3]);
        settings.setString("parallelism.default", "1");
        settings.setString("taskmanager.memory.managed.size", "128m");
        settings.setString("taskmanager.memory.network.min", "32m");
        settings.setString("taskmanager.memory.network.max", "32m");
        settings.setString("restart-strategy.type", "none");
        for (String each : Arrays.copyOfRange(args, 7, args.length)) {
            String name = each.substring(0, each.indexOf('='));
            String value = each.substring(each.indexOf('=') + 1);
            if (name.startsWith("sink.")) SINK.put(name.substring(5), value);
            else settings.setString(name, value);
        }
        return settings;
    }

    static JobGraph graph(Configuration settings, String[] args) {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(1);
        var source = KafkaSource.<Tuple2<String, String>>builder().setBootstrapServers(args[0]).setTopics(args[4])
            .setGroupId(args[1]).setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new Reading())
            .setProperty("fetch.max.wait.ms", "50").setProperty("partition.discovery.interval.ms", "-1").build();
        var sink = KafkaSink.<String>builder().setBootstrapServers(args[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix(args[1])
            .setTransactionNamingStrategy(TransactionNamingStrategy.POOLING)
            .setProperty("transaction.timeout.ms", "60000").setProperty("linger.ms", "0").setKafkaProducerConfig(SINK)
            .setRecordSerializer(KafkaRecordSerializationSchema.builder().setTopic(args[5])
                .setValueSerializationSchema(new SimpleStringSchema()).build()).build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "in").uid("in").keyBy(row -> row.f0)
            .process(new Count(args[3], Integer.parseInt(args[6]))).uid("count").sinkTo(sink).uid("out");
        return environment.getStreamGraph().getJobGraph();
    }

    /** Waits until each task runs. */
    static void started(MiniCluster cluster, JobID job, long begin) throws Exception {
        while (true) {
            JobStatus status = cluster.getJobStatus(job).get();
            if (status.isTerminalState()) {
                say("FAILED " + status);
                cluster.requestJobResult(job).get().getSerializedThrowable().ifPresent(Throwable::printStackTrace);
                return;
            }
            boolean running = status == JobStatus.RUNNING;
            if (running) {
                for (var vertex : cluster.getExecutionGraph(job).get().getAllExecutionVertices()) {
                    running &= vertex.getExecutionState() == ExecutionState.RUNNING;
                }
            }
            if (running) {
                say("RUNNING " + (System.nanoTime() - begin) / 1_000_000);
                return;
            }
            Thread.sleep(5);
        }
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        Configuration settings = settings(args);
        MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(settings)
            .setNumTaskManagers(1).setNumSlotsPerTaskManager(1).build());
        cluster.start();
        say("READY");
        JobID job = null;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("quit"); ) {
            long begin = System.nanoTime();
            if (line.startsWith("start ")) {
                JobGraph graph = graph(settings, args);
                String path = line.substring(6);
                if (!path.equals("none")) {
                    graph.setSavepointRestoreSettings(
                        SavepointRestoreSettings.forPath(path, false, RecoveryClaimMode.CLAIM));
                }
                job = cluster.submitJob(graph).get(60, TimeUnit.SECONDS).getJobID();
                started(cluster, job, begin);
            } else if (line.equals("stop")) {
                String path = cluster.stopWithSavepoint(
                    job, "file://" + args[2] + "/savepoints", false, SavepointFormatType.NATIVE)
                    .get(120, TimeUnit.SECONDS);
                say("SAVEPOINT " + path + " " + (System.nanoTime() - begin) / 1_000_000);
            }
        }
        Runtime.getRuntime().halt(0);
    }
}
