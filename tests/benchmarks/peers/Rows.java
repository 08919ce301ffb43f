import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.StreamWriteFeature;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;

/** What the programs share: the rows as JSON, token by token, and how far they have come. */
final class Rows {
    static final JsonFactory JSON = JsonFactory.builder()
        .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER).enable(StreamWriteFeature.USE_FAST_DOUBLE_WRITER).build();
    private static final ThreadLocal<ByteArrayOutputStream> BUFFER =
        ThreadLocal.withInitial(() -> new ByteArrayOutputStream(512));

    static final long WINDOW_MS = 1000, SLIDE_MS = 250;

    /** An event, and what elements have added to it. */
    static final class Event {
        String sensor, state;
        long n;
        double value;
        Double twice, made;
    }

    static Event parse(byte[] text) throws IOException {
        Event event = new Event();
        try (JsonParser parser = JSON.createParser(text)) {
            parser.nextToken();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                JsonToken token = parser.nextToken();
                switch (name) {
                    case "sensor" -> event.sensor = parser.getText();
                    case "n" -> event.n = parser.getLongValue();
                    case "value" -> event.value = parser.getDoubleValue();
                    case "state" -> event.state = parser.getText();
                    case "double" -> event.twice = parser.getDoubleValue();
                    case "made" -> event.made = token == JsonToken.VALUE_NULL ? null : parser.getDoubleValue();
                    default -> parser.skipChildren();
                }
            }
        }
        return event;
    }

    /** The event as JSON. `twice` is left out where it is missing; `made` is null in the first row of a key. */
    static byte[] event(Event event, boolean withMade) throws IOException {
        return object(out -> {
            out.writeStringField("sensor", event.sensor);
            out.writeNumberField("n", event.n);
            out.writeNumberField("value", event.value);
            out.writeStringField("state", event.state);
            if (event.twice != null) out.writeNumberField("double", event.twice);
            if (withMade) number(out, "made", event.made);
        });
    }

    /** Welford's statistics: count, due, mean, squares, low, high. A report is due once a second of event time. */
    static byte[] report(String sensor, double[] state) throws IOException {
        return object(out -> {
            out.writeStringField("sensor", sensor);
            out.writeNumberField("count", (long) state[0]);
            out.writeNumberField("mean", state[2]);
            number(out, "stddev", state[0] > 1 ? Math.sqrt(state[3] / (state[0] - 1)) : null);
            out.writeNumberField("minimum", state[4]);
            out.writeNumberField("maximum", state[5]);
        });
    }

    static double[] noStatistics() {
        return new double[] {0, 0, 0, 0, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY};
    }

    static boolean due(double[] state, long timeMs) {
        return state[1] != 0 && timeMs >= (long) state[1];
    }

    static void add(double[] state, double value, long timeMs) {
        state[0]++;
        double delta = value - state[2];
        state[2] += delta / state[0];
        state[3] += delta * (value - state[2]);
        state[4] = Math.min(state[4], value);
        state[5] = Math.max(state[5], value);
        if (state[1] == 0) state[1] = (timeMs / 1000 + 1) * 1000;
    }

    /** `sums`: count, sum, highest. */
    static byte[] window(String sensor, long startMs, double[] sums) throws IOException {
        return object(out -> {
            out.writeNumberField("window_start", startMs);
            out.writeNumberField("window_end", startMs + WINDOW_MS);
            out.writeStringField("sensor", sensor);
            out.writeNumberField("average", sums[1] / sums[0]);
            out.writeNumberField("highest", sums[2]);
            out.writeNumberField("count", (long) sums[0]);
        });
    }

    static void sum(double[] sums, double count, double sum, double highest) {
        sums[0] += count;
        sums[1] += sum;
        sums[2] = Math.max(sums[2], highest);
    }

    static double[] noSums() {
        return new double[] {0, 0, Double.NEGATIVE_INFINITY};
    }

    private interface Fields {
        void to(JsonGenerator out) throws IOException;
    }

    private static byte[] object(Fields fields) throws IOException {
        ByteArrayOutputStream buffer = BUFFER.get();
        buffer.reset();
        try (JsonGenerator out = JSON.createGenerator(buffer)) {
            out.writeStartObject();
            fields.to(out);
            out.writeEndObject();
        }
        return buffer.toByteArray();
    }

    private static void number(JsonGenerator out, String name, Double value) throws IOException {
        if (value == null) out.writeNullField(name);
        else out.writeNumberField(name, value);
    }

    /** Says "WARM n" at the warm-th event, and "EVENTS_PER_S x" between that and the last one. */
    static final class Progress {
        private final long count, warm;
        private final AtomicLong seen = new AtomicLong();
        private final Runnable atEnd;
        private volatile long warmAt;

        Progress(long count, long warm, Runnable atEnd) {
            this.count = count;
            this.warm = warm;
            this.atEnd = atEnd;
        }

        void event() {
            long now = seen.incrementAndGet();
            if (now == warm) {
                warmAt = System.nanoTime();
                System.out.println("WARM " + now);
                System.out.flush();
            }
            if (now == count) {
                System.out.println("EVENTS_PER_S " + (count - warm) * 1e9 / (System.nanoTime() - warmAt));
                System.out.flush();
                atEnd.run();
            }
        }
    }
}
