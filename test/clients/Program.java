import io.kurrent.dbclient.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;

/** Tries the event store at the address in its first argument: prints a line for each check, and exits with 1 if one failed. */
public class Program {
  static KurrentDBClient client;
  static int failed = 0;

  interface Check {
    void run() throws Exception;
  }

  static void check(String name, Check body) {
    try {
      body.run();
      System.out.println("ok\t" + name);
    } catch (Throwable error) {
      failed++;
      Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
      System.out.println("FAILED\t" + name + "\t" + cause.toString().replaceAll("\\s+", " "));
    }
  }

  static void expect(Object expected, Object actual) {
    if (!Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + ", got " + actual);
  }

  static <E extends Throwable> E refused(Class<E> type, CompletableFuture<?> future) throws Exception {
    try {
      future.get(20, TimeUnit.SECONDS);
    } catch (ExecutionException error) {
      if (type.isInstance(error.getCause())) return type.cast(error.getCause());
      throw new AssertionError("expected " + type.getSimpleName() + ", got " + error.getCause());
    }
    throw new AssertionError("expected " + type.getSimpleName() + ", got a result");
  }

  /** The client passes these errors on as they are. */
  static void refusedWith(String code, CompletableFuture<?> future) throws Exception {
    Throwable error = refused(Throwable.class, future);
    if (!error.toString().contains(code)) throw new AssertionError("expected " + code + ", got " + error);
  }

  static <T> T done(CompletableFuture<T> future) throws Exception {
    return future.get(20, TimeUnit.SECONDS);
  }

  static String fresh(String name) {
    return name + "-" + UUID.randomUUID();
  }

  static EventData event(String type) {
    return EventData.builderAsJson(type, "{\"n\":1}".getBytes(StandardCharsets.UTF_8)).build();
  }

  static Iterator<EventData> events(String type, int count) {
    List<EventData> events = new ArrayList<>();
    for (int i = 0; i < count; i++) events.add(event(type));
    return events.iterator();
  }

  static AppendToStreamOptions expecting(StreamState state) {
    return AppendToStreamOptions.get().streamState(state);
  }

  static <T> T next(BlockingQueue<T> queue) throws Exception {
    T value = queue.poll(20, TimeUnit.SECONDS);
    if (value == null) throw new AssertionError("nothing arrived");
    return value;
  }

  public static void main(String[] args) {
    KurrentDBClientSettings settings = KurrentDBConnectionString.parseOrThrow(args[0]);
    client = KurrentDBClient.create(settings);
    appends();
    reads();
    deletions();
    subscriptions();
    groups(KurrentDBPersistentSubscriptionsClient.from(client));
    reports(KurrentDBPersistentSubscriptionsClient.from(client));
    System.exit(failed == 0 ? 0 : 1);
  }

  static void appends() {
    check("append to a new stream, then at its revision", () -> {
      String stream = fresh("java");
      WriteResult first = done(client.appendToStream(stream, expecting(StreamState.noStream()), events("a", 3)));
      expect(StreamState.streamRevision(2), first.getNextExpectedRevision());
      WriteResult second = done(client.appendToStream(stream, expecting(StreamState.streamRevision(2)), event("a")));
      expect(StreamState.streamRevision(3), second.getNextExpectedRevision());
      expect(true, second.getLogPosition().compareTo(first.getLogPosition()) > 0);
    });
    check("a wrong revision names stream, expected and actual state", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 2)));
      WrongExpectedVersionException wrong = refused(WrongExpectedVersionException.class,
          client.appendToStream(stream, expecting(StreamState.streamRevision(0)), event("b")));
      expect(stream, wrong.getStreamName());
      expect(StreamState.streamRevision(0), wrong.getExpectedState());
      expect(StreamState.streamRevision(1), wrong.getActualState());
    });
    check("no stream expected, and one expected that is missing", () -> {
      String stream = fresh("java");
      WrongExpectedVersionException missing = refused(WrongExpectedVersionException.class,
          client.appendToStream(stream, expecting(StreamState.streamExists()), event("b")));
      expect(StreamState.noStream(), missing.getActualState());
      done(client.appendToStream(stream, event("a")));
      WrongExpectedVersionException wrong = refused(WrongExpectedVersionException.class,
          client.appendToStream(stream, expecting(StreamState.noStream()), event("b")));
      expect(StreamState.streamRevision(0), wrong.getActualState());
    });
    check("a repeated append is stored once", () -> {
      String stream = fresh("java");
      EventData same = event("a");
      WriteResult first = done(client.appendToStream(stream, expecting(StreamState.noStream()), same));
      WriteResult again = done(client.appendToStream(stream, expecting(StreamState.noStream()), same));
      expect(first.getNextExpectedRevision(), again.getNextExpectedRevision());
      expect(1, done(client.readStream(stream, ReadStreamOptions.get())).getEvents().size());
    });
    check("metadata of a stream, also of a new one", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 5)));
      expect(null, done(client.getStreamMetadata(stream)).getMaxCount());
      StreamMetadata metadata = new StreamMetadata();
      metadata.setMaxCount(2L);
      done(client.setStreamMetadata(stream, metadata));
      expect(2, ((Number) done(client.getStreamMetadata(stream)).getMaxCount()).intValue());
      expect(2, done(client.readStream(stream, ReadStreamOptions.get())).getEvents().size());
    });
    check("an append of more than a megabyte is refused", () -> {
      EventData large = EventData.builderAsBinary("large", new byte[2 * 1024 * 1024]).build();
      refusedWith("INVALID_ARGUMENT", client.appendToStream(fresh("java"), large));
    });
  }

  static void reads() {
    check("read forwards and backwards, with the last stream position", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 10)));
      ReadResult all = done(client.readStream(stream, ReadStreamOptions.get().forwards().fromStart()));
      expect(10, all.getEvents().size());
      expect(9L, all.getLastStreamPosition());
      ReadResult some = done(client.readStream(stream, ReadStreamOptions.get().forwards().fromRevision(3).maxCount(4)));
      expect(3L, some.getEvents().get(0).getEvent().getRevision());
      expect(4, some.getEvents().size());
      expect(9L, some.getLastStreamPosition());
      ReadResult back = done(client.readStream(stream, ReadStreamOptions.get().backwards().fromEnd().maxCount(3)));
      expect(9L, back.getEvents().get(0).getEvent().getRevision());
      expect(9L, back.getLastStreamPosition());
    });
    check("read a missing stream", () -> {
      refused(StreamNotFoundException.class, client.readStream(fresh("none"), ReadStreamOptions.get()));
    });
    check("read $all, forwards and backwards", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 3)));
      ReadResult last = done(client.readAll(ReadAllOptions.get().backwards().fromEnd().maxCount(3)));
      expect(3, last.getEvents().size());
      expect(stream, last.getEvents().get(0).getEvent().getStreamId());
      Position from = last.getEvents().get(2).getEvent().getPosition();
      ReadResult forwards = done(client.readAll(ReadAllOptions.get().forwards().fromPosition(from).maxCount(2)));
      expect(last.getEvents().get(2).getEvent().getEventId(), forwards.getEvents().get(0).getEvent().getEventId());
    });
  }

  static void deletions() {
    check("a deleted stream is not found, and may be written again", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 2)));
      done(client.deleteStream(stream));
      refused(StreamNotFoundException.class, client.readStream(stream, ReadStreamOptions.get()));
      done(client.appendToStream(stream, event("b")));
      ReadResult after = done(client.readStream(stream, ReadStreamOptions.get()));
      expect(2L, after.getEvents().get(0).getEvent().getRevision());
    });
    check("a tombstoned stream is gone", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 2)));
      done(client.tombstoneStream(stream));
      refusedWith("FAILED_PRECONDITION", client.readStream(stream, ReadStreamOptions.get()));
      refused(StreamDeletedException.class, client.appendToStream(stream, event("b")));
    });
    check("deleting at a wrong revision", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 2)));
      DeleteStreamOptions options = DeleteStreamOptions.get().streamState(StreamState.streamRevision(7));
      refused(WrongExpectedVersionException.class, client.deleteStream(stream, options));
    });
  }

  static class Listener extends SubscriptionListener {
    final BlockingQueue<String> seen = new LinkedBlockingQueue<>();

    @Override
    public void onEvent(Subscription subscription, ResolvedEvent event) {
      seen.add(event.getOriginalEvent().getEventType());
    }

    @Override
    public void onCaughtUp(Subscription subscription, java.time.Instant at, Long revision, Position position) {
      seen.add("caught up");
    }

    @Override
    public void onCancelled(Subscription subscription, Throwable error) {
      seen.add("cancelled " + error);
    }
  }

  static void subscriptions() {
    check("a catch-up subscription: old events, caught up, new ones", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("old", 2)));
      Listener listener = new Listener();
      Subscription subscription = done(client.subscribeToStream(stream, listener));
      expect(List.of("old", "old", "caught up"), List.of(next(listener.seen), next(listener.seen), next(listener.seen)));
      done(client.appendToStream(stream, event("new")));
      expect("new", next(listener.seen));
      subscription.stop();
    });
    check("a filtered subscription to $all", () -> {
      String prefix = fresh("filtered");
      done(client.appendToStream(prefix + "-1", events("f1", 2)));
      done(client.appendToStream(fresh("other"), events("other", 2)));
      SubscriptionFilter filter = SubscriptionFilter.newBuilder().addStreamNamePrefix(prefix).build();
      Listener listener = new Listener();
      Subscription subscription =
          done(client.subscribeToAll(listener, SubscribeToAllOptions.get().fromStart().filter(filter)));
      expect(List.of("f1", "f1", "caught up"), List.of(next(listener.seen), next(listener.seen), next(listener.seen)));
      done(client.appendToStream(prefix + "-2", event("f2")));
      expect("f2", next(listener.seen));
      subscription.stop();
    });
  }

  static class Consumer extends PersistentSubscriptionListener {
    final BlockingQueue<ResolvedEvent> events = new LinkedBlockingQueue<>();
    final BlockingQueue<String> ends = new LinkedBlockingQueue<>();
    final BlockingQueue<Integer> retries = new LinkedBlockingQueue<>();

    @Override
    public void onEvent(PersistentSubscription subscription, int retryCount, ResolvedEvent event) {
      events.add(event);
      retries.add(retryCount);
    }

    @Override
    public void onCancelled(PersistentSubscription subscription, Throwable error) {
      ends.add(String.valueOf(error));
    }
  }

  static void groups(KurrentDBPersistentSubscriptionsClient groups) {
    check("a group: acknowledge, retry, park, replay", () -> {
      String stream = fresh("java");
      done(client.appendToStream(stream, events("a", 2)));
      done(groups.createToStream(stream, "group", CreatePersistentSubscriptionToStreamOptions.get().fromStart()));
      Consumer consumer = new Consumer();
      PersistentSubscription subscription = done(groups.subscribeToStream(stream, "group", consumer));
      expect(stream + "::group", subscription.getSubscriptionId());
      ResolvedEvent first = next(consumer.events);
      ResolvedEvent second = next(consumer.events);
      subscription.ack(second);
      subscription.nack(NackAction.Retry, "again", first);
      expect(first.getEvent().getEventId(), next(consumer.events).getEvent().getEventId());
      expect(List.of(0, 0, 1), List.of(next(consumer.retries), next(consumer.retries), next(consumer.retries)));
      subscription.nack(NackAction.Park, "no use", first);
      for (int i = 0; parked(groups, stream) < 1 && i < 100; i++) Thread.sleep(100);
      expect(1L, parked(groups, stream));
      done(groups.replayParkedMessagesToStream(stream, "group"));
      ResolvedEvent replayed = next(consumer.events);
      expect(first.getEvent().getEventId(), replayed.getEvent().getEventId());
      subscription.ack(replayed);
      done(groups.deleteToStream(stream, "group"));
      expect(true, next(consumer.ends).contains("was dropped"));
    });
    check("groups that exist, and that do not", () -> {
      String stream = fresh("java");
      done(groups.createToStream(stream, "group"));
      refusedWith("ALREADY_EXISTS", groups.createToStream(stream, "group"));
      refusedWith("NOT_FOUND", groups.updateToStream(stream, "none"));
      refusedWith("NOT_FOUND", groups.deleteToStream(stream, "none"));
      refusedWith("NOT_FOUND", groups.subscribeToStream(stream, "none", new Consumer()));
      expect(Optional.empty(), done(groups.getInfoToStream(stream, "none")));
      expect(1, done(groups.listToStream(stream)).size());
      expect("group", done(groups.listToStream(stream)).get(0).getGroupName());
    });
    check("a group on $all with a filter", () -> {
      String prefix = fresh("filtered");
      SubscriptionFilter filter = SubscriptionFilter.newBuilder().addStreamNamePrefix(prefix).build();
      String group = fresh("group");
      done(groups.createToAll(group, CreatePersistentSubscriptionToAllOptions.get().fromStart().filter(filter)));
      Consumer consumer = new Consumer();
      PersistentSubscription subscription = done(groups.subscribeToAll(group, consumer));
      done(client.appendToStream(prefix + "-1", event("f")));
      ResolvedEvent event = next(consumer.events);
      expect(prefix + "-1", event.getEvent().getStreamId());
      subscription.ack(event);
      subscription.stop();
      done(groups.deleteToAll(group));
    });
  }

  /** Forms that users of other servers reported. */
  static void reports(KurrentDBPersistentSubscriptionsClient groups) {
    check("an append with one id twice succeeds (KurrentDB-Client-Dotnet 159)", () -> {
      String stream = fresh("java");
      EventData same = event("a");
      done(client.appendToStream(stream, expecting(StreamState.noStream()), same, same));
      done(client.readStream(stream, ReadStreamOptions.get()));
    });
    check("a subscription to a stream that is being created misses nothing (KurrentDB 2704)", () -> {
      for (int i = 0; i < 50; i++) {
        String stream = fresh("java");
        Listener listener = new Listener();
        CompletableFuture<Subscription> subscribing = client.subscribeToStream(stream, listener);
        CompletableFuture<WriteResult> appending = client.appendToStream(stream, event("first"));
        done(appending);
        Subscription subscription = done(subscribing);
        done(client.appendToStream(stream, event("second")));
        List<String> seen = new ArrayList<>();
        while (seen.size() < 2) {
          String one = next(listener.seen);
          if (!one.equals("caught up")) seen.add(one);
        }
        expect(List.of("first", "second"), seen);
        subscription.stop();
      }
    });
    check("no checkpoint is beyond the last event (KurrentDB 4970)", () -> {
      String prefix = fresh("checkpoints");
      BlockingQueue<Position> checkpoints = new LinkedBlockingQueue<>();
      SubscriptionFilter filter = SubscriptionFilter.newBuilder()
          .addStreamNamePrefix(prefix)
          .withCheckpointer((subscription, position) -> {
            checkpoints.add(position);
            return CompletableFuture.completedFuture(null);
          })
          .build();
      Subscription subscription =
          done(client.subscribeToAll(new Listener(), SubscribeToAllOptions.get().fromStart().filter(filter)));
      Position last = done(client.appendToStream(fresh("other"), events("other", 100))).getLogPosition();
      expect(true, next(checkpoints).compareTo(last) <= 0);
      Position next = done(client.appendToStream(prefix + "-1", event("f"))).getLogPosition();
      for (Position seen : checkpoints) expect(true, seen.compareTo(next) < 0);
      subscription.stop();
    });
    check("a replay of no parked events leaves later replays working (KurrentDB 1438)", () -> {
      String stream = fresh("java");
      done(groups.createToStream(stream, "group", CreatePersistentSubscriptionToStreamOptions.get().fromStart()));
      done(groups.replayParkedMessagesToStream(stream, "group"));
      Consumer consumer = new Consumer();
      PersistentSubscription subscription = done(groups.subscribeToStream(stream, "group", consumer));
      done(client.appendToStream(stream, event("a")));
      subscription.nack(NackAction.Park, "no use", next(consumer.events));
      for (int i = 0; parked(groups, stream) < 1 && i < 100; i++) Thread.sleep(100);
      done(groups.replayParkedMessagesToStream(stream, "group"));
      subscription.ack(next(consumer.events));
    });
    check("links to deleted events are delivered without them (EventStore-Client-Go 59)", () -> {
      String stream = fresh("java");
      String links = fresh("links");
      done(client.appendToStream(stream, event("a")));
      done(client.deleteStream(stream));
      byte[] target = ("0@" + stream).getBytes(StandardCharsets.UTF_8);
      done(client.appendToStream(links, EventData.builderAsBinary("$>", target).build()));
      CreatePersistentSubscriptionToStreamOptions options =
          CreatePersistentSubscriptionToStreamOptions.get().fromStart().resolveLinkTos();
      done(groups.createToStream(links, "group", options));
      Consumer consumer = new Consumer();
      PersistentSubscription subscription = done(groups.subscribeToStream(links, "group", consumer));
      ResolvedEvent link = next(consumer.events);
      expect(null, link.getEvent());
      expect("$>", link.getLink().getEventType());
      subscription.ack(link);
    });
    check("an append may be repeated after its events were removed by maximum count (KurrentDB 3481)", () -> {
      String stream = fresh("java");
      StreamMetadata metadata = new StreamMetadata();
      metadata.setMaxCount(1L);
      done(client.setStreamMetadata(stream, metadata));
      for (long i = 0; i < 3; i++) {
        StreamState state = i == 0 ? StreamState.noStream() : StreamState.streamRevision(i - 1);
        EventData event = event("a");
        WriteResult first = done(client.appendToStream(stream, expecting(state), event));
        WriteResult again = done(client.appendToStream(stream, expecting(state), event));
        expect(first.getNextExpectedRevision(), again.getNextExpectedRevision());
      }
    });
  }

  static long parked(KurrentDBPersistentSubscriptionsClient groups, String stream) throws Exception {
    return done(groups.getInfoToStream(stream, "group")).get().getStats().getParkedMessageCount();
  }
}
