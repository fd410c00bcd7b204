import { html as names, Parser, type Token, type TreeAdapter, type TreeAdapterTypeMap } from 'parse5';

import { HtmlNode } from './html-node.ts';

/** Characters of a `noscript` that is read. */
const MIN_NOSCRIPT = 1_000;
/** Elements within deeper ones are left out, and their text belongs to the deepest one that is read. */
const MAX_DEPTH = 512;
/** Elements and texts. The rest of a page that has more is not read. */
const MAX_NODES = 400_000;
/** Of an element; further ones are left out. */
const MAX_ATTRIBUTES = 256;

const NONE: Token.Attribute[] = [];

class TooManyNodes extends Error {}

interface Types extends TreeAdapterTypeMap<
  HtmlNode,
  HtmlNode,
  HtmlNode,
  HtmlNode,
  HtmlNode,
  HtmlNode,
  HtmlNode,
  HtmlNode,
  HtmlNode,
  HtmlNode
> {}

/** Keeps elements and texts. Comments and the kind of the document type mean nothing for text. */
class Tree implements TreeAdapter<Types> {
  readonly noscripts: HtmlNode[] = [];
  #nodes = 0;
  #mode = names.DOCUMENT_MODE.NO_QUIRKS;

  createElement(name: string, namespace: string, attributes: Token.Attribute[]): HtmlNode {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES) throw new TooManyNodes();
    const node = new HtmlNode(name, namespace, attributes, '');
    if (name === 'noscript') this.noscripts.push(node);
    return node;
  }

  createTextNode(text: string): HtmlNode {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES) throw new TooManyNodes();
    return new HtmlNode('#text', '', NONE, text);
  }

  createDocument = (): HtmlNode => new HtmlNode('#document', '', NONE, '');
  createDocumentFragment = (): HtmlNode => new HtmlNode('#fragment', '', NONE, '');
  createCommentNode = (): HtmlNode => new HtmlNode('#comment', '', NONE, '');

  appendChild(parent: HtmlNode, node: HtmlNode): void {
    if (node.name !== '#comment') parent.append(node);
  }

  insertBefore(parent: HtmlNode, node: HtmlNode, reference: HtmlNode): void {
    if (node.name === '#comment') return;
    node.parent = parent;
    node.next = reference;
    node.previous = reference.previous;
    if (reference.previous === null) parent.first = node;
    else reference.previous.next = node;
    reference.previous = node;
  }

  detachNode(node: HtmlNode): void {
    const { parent, previous, next } = node;
    if (parent === null) return;
    if (previous === null) parent.first = next;
    else previous.next = next;
    if (next === null) parent.last = previous;
    else next.previous = previous;
    node.parent = node.previous = node.next = null;
  }

  insertText(parent: HtmlNode, text: string): void {
    if (parent.last?.name === '#text') parent.last.text += text;
    else this.appendChild(parent, this.createTextNode(text));
  }

  insertTextBefore(parent: HtmlNode, text: string, reference: HtmlNode): void {
    if (reference.previous?.name === '#text') reference.previous.text += text;
    else this.insertBefore(parent, this.createTextNode(text), reference);
  }

  adoptAttributes(recipient: HtmlNode, attributes: Token.Attribute[]): void {
    for (const attribute of attributes) {
      if (recipient.list.length === MAX_ATTRIBUTES) return;
      if (!recipient.list.some(({ name }) => name === attribute.name)) recipient.list.push(attribute);
    }
  }

  getChildNodes(node: HtmlNode): HtmlNode[] {
    const nodes: HtmlNode[] = [];
    for (let child = node.first; child !== null; child = child.next) nodes.push(child);
    return nodes;
  }

  getFirstChild = (node: HtmlNode): HtmlNode | null => node.first;
  getParentNode = (node: HtmlNode): HtmlNode | null => node.parent;
  getAttrList = (node: HtmlNode): Token.Attribute[] => node.list;
  getTagName = (node: HtmlNode): string => node.name;
  getNamespaceURI = (node: HtmlNode): names.NS => node.namespace as names.NS;
  getTextNodeContent = (node: HtmlNode): string => node.text;
  getCommentNodeContent = (): string => '';
  getDocumentTypeNodeName = (): string => '';
  getDocumentTypeNodePublicId = (): string => '';
  getDocumentTypeNodeSystemId = (): string => '';
  setDocumentType(): void {}
  setDocumentMode(_document: HtmlNode, mode: names.DOCUMENT_MODE): void {
    this.#mode = mode;
  }
  getDocumentMode = (): names.DOCUMENT_MODE => this.#mode;
  isElementNode = (node: HtmlNode): node is HtmlNode => !node.name.startsWith('#');
  isTextNode = (node: HtmlNode): node is HtmlNode => node.name === '#text';
  isCommentNode = (node: HtmlNode): node is HtmlNode => node.name === '#comment';
  isDocumentTypeNode = (_node: HtmlNode): _node is HtmlNode => false;
  /** The content of a template is its child, as for a reader of text without scripts. */
  setTemplateContent(template: HtmlNode, content: HtmlNode): void {
    this.appendChild(template, content);
  }
  getTemplateContent = (template: HtmlNode): HtmlNode => template.first!;
  setNodeSourceCodeLocation(): void {}
  getNodeSourceCodeLocation = (): null => null;
  updateNodeSourceCodeLocation(): void {}
}

/** Leaves out elements and attributes beyond limits, so that no search among open elements, or among attributes, takes long. */
class BoundedParser extends Parser<Types> {
  #ignored = 0;

  override onStartTag(token: Token.TagToken): void {
    if (token.attrs.length > MAX_ATTRIBUTES) token.attrs.length = MAX_ATTRIBUTES;
    if (this.openElements.stackTop < MAX_DEPTH) return super.onStartTag(token);
    if (!token.selfClosing) this.#ignored += 1;
  }

  override onEndTag(token: Token.TagToken): void {
    if (this.#ignored === 0) return super.onEndTag(token);
    this.#ignored -= 1;
  }
}

/**
 * The tree of a page as parse5 constructs it, by the HTML standard. `noscript` holds a text there; that text is read as a page of
 * its own where it is long enough to be the content, as in forums made with Discourse.
 */
export function parseHtml(html: string): HtmlNode {
  const { document, noscripts } = constructTree(html);
  for (const node of noscripts) readNoscript(node);
  return document;
}

/** Makes elements of the text of `noscript`. */
function readNoscript(node: HtmlNode): void {
  const html = node.first?.text ?? '';
  node.first = node.last = null;
  if (html.length < MIN_NOSCRIPT || node.parent?.name === 'head') return;
  node.append(constructTree(html).document);
}

function constructTree(html: string): { readonly document: HtmlNode; readonly noscripts: readonly HtmlNode[] } {
  const tree = new Tree();
  const parser = new BoundedParser({ treeAdapter: tree, scriptingEnabled: true });
  const { document } = parser;
  try {
    parser.tokenizer.write(html, true);
  } catch (error) {
    if (!(error instanceof TooManyNodes)) throw error;
  }
  return { document, noscripts: tree.noscripts };
}
