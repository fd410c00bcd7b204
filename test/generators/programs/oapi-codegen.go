package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path"

	"example.org/flow/parley"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func text(content string, span *string, parent *string) parley.InteractionPostInput {
	var item parley.InteractionContentInput
	if err := item.FromTextContentInput(parley.TextContentInput{Text: content}); err != nil {
		panic(err)
	}
	return parley.InteractionPostInput{Content: []parley.InteractionContentInput{item}, SpanId: span, ParentSpanId: parent}
}

func main() {
	ctx := context.Background()
	key := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", os.Getenv("PARLEY_KEY"))
		return nil
	}
	client := must(parley.NewClientWithResponses(os.Getenv("PARLEY_URL"), parley.WithRequestEditorFn(key)))
	created := must(client.CreateChannelWithResponse(ctx, nil, parley.ChannelCreateInput{Name: "Generated"}))
	id := created.JSON200.Id
	span := "root"
	root := must(client.PostInteractionWithResponse(ctx, id, nil, text("Hello", &span, nil)))
	must(client.PostInteractionWithResponse(ctx, id, nil, text("World", nil, &span)))
	nested := true
	tree := must(client.GetInteractionWithResponse(ctx, root.JSON200.Id, &parley.GetInteractionParams{IncludeNestedInteractions: &nested}))
	item := must((*tree.JSON200.NestedInteractions)[0].Content[0].AsTextContent())
	if item.Text != "World" {
		panic("the tree lacks the reply")
	}
	page := must(client.ListInteractionsWithResponse(ctx, id, nil))
	if len(page.JSON200.Items) != 2 {
		panic("the list lacks interactions")
	}
	name := "a.txt"
	media := must(client.UploadMediaWithBodyWithResponse(ctx, &parley.UploadMediaParams{Name: &name}, "application/octet-stream", bytes.NewReader([]byte("bytes"))))
	file := must(client.GetMediaFileWithResponse(ctx, path.Base(*media.JSON200.FileUrl)))
	if string(file.Body) != "bytes" {
		panic("the file has changed")
	}
}
