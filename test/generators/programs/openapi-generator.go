package main

import (
	"context"
	"io"
	"os"
	"path"

	"example.org/flow/parley"
)

func must[T any](value T, _ any, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func text(content string) *parley.InteractionPostInput {
	item := parley.TextContentInputAsInteractionContentInput(parley.NewTextContentInput("text", content))
	return parley.NewInteractionPostInput([]parley.InteractionContentInput{item})
}

func main() {
	keys := map[string]parley.APIKey{"ApiKey": {Key: os.Getenv("PARLEY_KEY")}}
	ctx := context.WithValue(context.Background(), parley.ContextAPIKeys, keys)
	configuration := parley.NewConfiguration()
	configuration.Servers = parley.ServerConfigurations{{URL: os.Getenv("PARLEY_URL")}}
	client := parley.NewAPIClient(configuration)
	channel := must(client.ChannelsAPI.CreateChannel(ctx).ChannelCreateInput(*parley.NewChannelCreateInput("Generated")).Execute())
	first := text("Hello")
	first.SetSpanId("root")
	root := must(client.InteractionsAPI.PostInteraction(ctx, channel.Id).InteractionPostInput(*first).Execute())
	second := text("World")
	second.SetParentSpanId("root")
	must(client.InteractionsAPI.PostInteraction(ctx, channel.Id).InteractionPostInput(*second).Execute())
	tree := must(client.InteractionsAPI.GetInteraction(ctx, root.Id).IncludeNestedInteractions(true).Execute())
	if tree.NestedInteractions[0].Content[0].TextContent.Text != "World" {
		panic("the tree lacks the reply")
	}
	page := must(client.InteractionsAPI.ListInteractions(ctx, channel.Id).Execute())
	if len(page.Items) != 2 {
		panic("the list lacks interactions")
	}
	if err := os.WriteFile("a.txt", []byte("bytes"), 0o600); err != nil {
		panic(err)
	}
	file, err := os.Open("a.txt")
	media := must(client.MediaAPI.UploadMedia(ctx).Name("a.txt").Body(file).Execute())
	if err != nil {
		panic(err)
	}
	downloaded := must(client.MediaAPI.GetMediaFile(ctx, path.Base(media.GetFileUrl())).Execute())
	content, err := io.ReadAll(downloaded)
	if err != nil || string(content) != "bytes" {
		panic("the file has changed")
	}
}
