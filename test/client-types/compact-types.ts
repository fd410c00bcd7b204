/**
 * Shortens types without changing them: openapi-typescript repeats in each operation what most have in common, and lists
 * what an operation lacks (`query?: never`). Here, the file declares both once. Comments that repeat the type of a member
 * are left out. A test compares the types with those of openapi-typescript.
 */
import { ts } from '@ts-morph/common';

/** Types that the shortened declarations use. */
export const HELPERS = `/** An object without the other members of \`Names\`. */
type Only<Names extends string, T> = T & { [Name in Exclude<Names, keyof T>]?: never };
type Parameters<T> = Only<"query" | "header" | "path" | "cookie", T>;
type Path<T> = { parameters: Parameters<{}> } &
    Only<"get" | "put" | "post" | "delete" | "options" | "head" | "patch" | "trace", T>;
type Operation<T> = Only<"requestBody", T>;

`;

const REFUSALS = '400 401 403 404 409 412 413 415 422 429 431 503';

/** Members of a query that lists have in common. */
const PAGE = ['cursor', 'page', 'size'];

/** Names of the objects that most operations repeat, by the names of their members. */
const REPEATED: Readonly<Record<string, string>> = {
  'If-None-Match Parley-Position': 'ReadHeader',
  'Idempotency-Key If-Match': 'CommandHeader',
  [PAGE.join(' ')]: 'PageQuery',
  'ETag X-Request-Id': 'ReadAnswerHeaders',
  'ETag Idempotency-Replayed Parley-Position X-Request-Id': 'CommandAnswerHeaders',
  [REFUSALS]: 'Refusals',
};

/** Lines of comments that say what the member or its type says, or how openapi-typescript has made it. */
const REDUNDANT =
  /^@(enum|constant)\b|^@description (Successful Response|discriminator enum property added by openapi-typescript)$/;

/** Leaves out the lines of comments that readers do not need. @param declarations as openapi-typescript makes them */
export function withPlainComments(declarations: readonly ts.Node[]): ts.Node[] {
  for (const declaration of declarations) {
    const comments = ts.getSyntheticLeadingComments(declaration)?.flatMap((comment) => {
      const lines = comment.text.split('\n').map((line) => line.replace(/^\s*\*?\s*/, '').trimEnd());
      const kept = lines.filter((line) => line !== '' && !REDUNDANT.test(line));
      if (kept.length === 0) return [];
      const text = kept.length === 1 ? `* ${kept[0]} ` : `*\n * ${kept.join('\n * ')}\n `;
      return [{ ...comment, text }];
    });
    if (comments) ts.setSyntheticLeadingComments(declaration, comments);
    const children: ts.Node[] = [];
    ts.forEachChild(declaration, (child) => void children.push(child));
    withPlainComments(children);
  }
  return [...declarations];
}

/** @param declarations as openapi-typescript makes them */
export function compactTypes(declarations: readonly ts.Node[]): ts.Node[] {
  const types = new OperationTypes();
  const compact = withPlainComments(declarations).map((declaration) => {
    if (!ts.isInterfaceDeclaration(declaration)) return declaration;
    if (declaration.name.text === 'paths') return withTypes(declaration, (path) => types.path(path));
    if (declaration.name.text === 'operations')
      return withTypes(declaration, (operation) => types.operation(operation));
    return declaration;
  });
  const all = [...compact, ...types.repeated()];
  all.forEach(shortened);
  return all;
}

class OperationTypes {
  readonly #repeated = new Map<string, ts.TypeLiteralNode>();

  /** The declarations of the repeated objects. @throws if no operation has one of them any more */
  repeated(): ts.Node[] {
    return Object.values(REPEATED).map((name) => {
      const type = this.#repeated.get(name);
      if (type === undefined) throw new Error(`no operation has the members of ${name}`);
      return ts.factory.createTypeAliasDeclaration(undefined, name, undefined, type);
    });
  }

  path(path: ts.TypeLiteralNode): ts.TypeNode {
    const methods = present(path).filter((member) => nameOf(member) !== 'parameters');
    return generic('Path', methods);
  }

  operation(operation: ts.TypeLiteralNode): ts.TypeNode {
    const members = present(operation).map((member) => {
      const type = literalOf(member);
      if (type === undefined) return member;
      if (nameOf(member) === 'parameters') return withType(member, this.#parameters(type));
      return withType(member, nameOf(member) === 'responses' ? this.#responses(type) : this.#short(type));
    });
    return generic('Operation', members);
  }

  #parameters(parameters: ts.TypeLiteralNode): ts.TypeNode {
    const places = present(parameters).map((member) => {
      const type = literalOf(member);
      if (type === undefined || nameOf(member) !== 'query') return this.#named(member);
      return withType(member, this.#query(type));
    });
    return generic('Parameters', places);
  }

  #query(query: ts.TypeLiteralNode): ts.TypeNode {
    const all = propertiesOf(query);
    const page = all.filter((member) => PAGE.includes(nameOf(member)));
    const name = this.#nameOf(ts.factory.createTypeLiteralNode(page));
    if (name === undefined) return query;
    const own = all.filter((member) => !page.includes(member));
    if (own.length === 0) return reference(name);
    return ts.factory.createIntersectionTypeNode([reference(name), ts.factory.createTypeLiteralNode(own)]);
  }

  #responses(responses: ts.TypeLiteralNode): ts.TypeNode {
    const all = propertiesOf(responses).map((response) => {
      const type = literalOf(response);
      return type === undefined ? response : withType(response, this.#short(type));
    });
    const shared = all.filter((one) => literalOf(one) === undefined && REFUSALS.split(' ').includes(nameOf(one)));
    const refusals = this.#nameOf(ts.factory.createTypeLiteralNode(shared));
    if (refusals === undefined) return ts.factory.createTypeLiteralNode(all);
    const own = ts.factory.createTypeLiteralNode(all.filter((response) => !shared.includes(response)));
    return ts.factory.createIntersectionTypeNode([reference(refusals), own]);
  }

  /** A body or an answer, in one line if no member of it has a comment. */
  #short(type: ts.TypeLiteralNode): ts.TypeLiteralNode {
    const short = ts.factory.createTypeLiteralNode(propertiesOf(type).map((member) => this.#named(member)));
    return textOf(short).includes('/*') ? short : inOneLine(short);
  }

  /** Refers to the declaration of a repeated object. */
  #named(member: ts.PropertySignature): ts.PropertySignature {
    const type = literalOf(member);
    const name = type && this.#nameOf(type);
    return name === undefined ? member : withType(member, reference(name));
  }

  #nameOf(type: ts.TypeLiteralNode): string | undefined {
    const name = REPEATED[propertiesOf(type).map(nameOf).join(' ')];
    if (name === undefined) return undefined;
    const known = this.#repeated.get(name) ?? type;
    if (textOf(known) !== textOf(type)) throw new Error(`operations differ in ${name}: ${textOf(type)}`);
    this.#repeated.set(name, known);
    return name;
  }
}

const propertiesOf = (type: ts.TypeLiteralNode): ts.PropertySignature[] => type.members.filter(ts.isPropertySignature);

/** The members that an object has: others have the type `never`. */
const present = (type: ts.TypeLiteralNode): ts.PropertySignature[] =>
  propertiesOf(type).filter((member) => member.type?.kind !== ts.SyntaxKind.NeverKeyword);

function nameOf({ name }: ts.PropertySignature): string {
  return ts.isIdentifier(name) || ts.isStringLiteral(name) || ts.isNumericLiteral(name) ? name.text : textOf(name);
}

const literalOf = ({ type }: ts.PropertySignature): ts.TypeLiteralNode | undefined =>
  type !== undefined && ts.isTypeLiteralNode(type) ? type : undefined;

const reference = (name: string, ...types: ts.TypeNode[]): ts.TypeNode =>
  ts.factory.createTypeReferenceNode(name, types);

const generic = (name: string, members: readonly ts.PropertySignature[]): ts.TypeNode =>
  reference(name, ts.factory.createTypeLiteralNode(members));

/** Comments stay. */
const withType = (member: ts.PropertySignature, type: ts.TypeNode): ts.PropertySignature =>
  ts.factory.updatePropertySignature(member, member.modifiers, member.name, member.questionToken, type);

function withTypes(
  declaration: ts.InterfaceDeclaration,
  change: (type: ts.TypeLiteralNode) => ts.TypeNode,
): ts.InterfaceDeclaration {
  const members = declaration.members.map((member) => {
    const type = ts.isPropertySignature(member) ? literalOf(member) : undefined;
    return ts.isPropertySignature(member) && type ? withType(member, change(type)) : member;
  });
  const { modifiers, name, typeParameters, heritageClauses } = declaration;
  return ts.factory.updateInterfaceDeclaration(declaration, modifiers, name, typeParameters, heritageClauses, members);
}

function inOneLine(type: ts.TypeLiteralNode): ts.TypeLiteralNode {
  for (const member of type.members) {
    const inner = ts.isPropertySignature(member) ? literalOf(member) : undefined;
    if (inner) inOneLine(inner);
    const comments = ts.getSyntheticLeadingComments(member)?.map((one) => ({ ...one, hasTrailingNewLine: false }));
    if (comments) ts.setSyntheticLeadingComments(member, comments);
  }
  return ts.setEmitFlags(type, ts.EmitFlags.SingleLine);
}

/** Objects with one member are in one line, unless the member needs more. */
function shortened(node: ts.Node): void {
  ts.forEachChild(node, shortened);
  if (!ts.isTypeLiteralNode(node) || node.members.length !== 1) return;
  const [member] = node.members;
  const comment = member && ts.getSyntheticLeadingComments(member)?.some(({ text }) => text.includes('\n'));
  if (member && comment !== true && !textOf(typeOf(member)).includes('\n')) inOneLine(node);
}

const typeOf = (member: ts.TypeElement): ts.Node =>
  ts.isPropertySignature(member) || ts.isIndexSignatureDeclaration(member) ? (member.type ?? member) : member;

const printer = ts.createPrinter();
const NO_SOURCE = ts.createSourceFile('none.ts', '', ts.ScriptTarget.Latest);
const textOf = (node: ts.Node): string => printer.printNode(ts.EmitHint.Unspecified, node, NO_SOURCE);
