import java.io.File;
import java.nio.file.Files;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.ChannelsApi;
import org.openapitools.client.api.InteractionsApi;
import org.openapitools.client.api.MediaApi;
import org.openapitools.client.model.*;

public final class Flow {
  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient().setBasePath(System.getenv("PARLEY_URL"));
    client.setApiKey(System.getenv("PARLEY_KEY"));
    InteractionsApi interactions = new InteractionsApi(client);
    MediaApi files = new MediaApi(client);

    Channel channel =
        new ChannelsApi(client).createChannel().channelCreateInput(new ChannelCreateInput().name("Generated")).execute();
    String id = channel.getId();
    Interaction root = interactions.postInteraction(id).interactionPostInput(text("Hello").spanId("root")).execute();
    interactions.postInteraction(id).interactionPostInput(text("World").parentSpanId("root")).execute();
    Interaction tree = interactions.getInteraction(root.getId()).includeNestedInteractions(true).execute();
    InteractionContent item = tree.getNestedInteractions().get(0).getContent().get(0);
    check(item.getTextContent().getText().equals("World"), "the tree lacks the reply");
    check(interactions.listInteractions(id).execute().getItems().size() == 2, "the list lacks interactions");

    File file = File.createTempFile("flow", ".txt");
    Files.writeString(file.toPath(), "bytes");
    String url = files.uploadMedia().name("a.txt").body(file).execute().getFileUrl();
    File downloaded = files.getMediaFile(url.substring(url.lastIndexOf('/') + 1)).execute();
    check(Files.readString(downloaded.toPath()).equals("bytes"), "the file has changed");
  }

  private static InteractionPostInput text(String text) {
    TextContentInput item = new TextContentInput().type(TextContentInput.TypeEnum.TEXT).text(text);
    return new InteractionPostInput().content(List.of(new InteractionContentInput(item)));
  }

  private static void check(boolean holds, String problem) {
    if (!holds) throw new IllegalStateException(problem);
  }
}
