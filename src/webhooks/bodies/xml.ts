import { isUtf8 } from 'node:buffer';
import sax from 'sax';
import { LIMITS } from '../../contracts/index.ts';
import { BodyFault, faultsOf, type ParsedBody, type ParsedPayload, payloadFrom } from './parsed-body.ts';

/**
 * Maximum nesting of elements. An element adds up to two levels to the value (an object and an array), and the value
 * must stay within LIMITS.jsonDepth.
 */
const MAX_DEPTH = LIMITS.jsonDepth / 2 - 1;
/** Only the five entities of XML. The type declarations lack the option. */
const STRICT = { strictEntities: true } as sax.SAXOptions;
const MAX_ELEMENTS = 100_000;
const MAX_ATTRIBUTES = 256;

type XmlValue = string | XmlObject;
interface XmlObject {
  [name: string]: XmlValue | XmlValue[];
}

/** An element whose end tag has not been read. */
interface OpenElement {
  name: string;
  children: XmlObject | undefined;
  attributes: number;
  text: string;
}

/**
 * Parses an XML document in UTF-8. A document with a DTD is rejected, so that there are no entities except the five of
 * XML. An element with text only becomes a string, any other element an object: `@name` is an attribute, `#text` the
 * text, other keys are the child elements, with an array for repeated ones.
 */
export function parseXml(body: Buffer): ParsedBody {
  if (!isUtf8(body)) return { fault: 'it is not UTF-8' };
  return faultsOf(() => parseText(body.toString('utf8')));
}

function parseText(text: string): ParsedPayload {
  const parser = sax.parser(true, STRICT);
  const tree = new XmlTree();
  parser.onerror = (error) => {
    throw new BodyFault(error.message.split('\n', 1)[0]!);
  };
  parser.ondoctype = () => {
    throw new BodyFault('it contains a DTD');
  };
  parser.onprocessinginstruction = ({ name, body }) => {
    if (name === 'xml') requireUtf8(body);
  };
  parser.onopentagstart = ({ name }) => tree.open(name);
  parser.onattribute = ({ name, value }) => tree.attribute(name, value);
  parser.ontext = (part) => tree.text(part);
  parser.oncdata = (part) => tree.text(part);
  parser.onclosetag = () => tree.close();
  parser.write(text).close();
  return payloadFrom(tree.root());
}

function requireUtf8(declaration: string): void {
  const [, encoding] = /encoding\s*=\s*["']([^"']*)["']/.exec(declaration) ?? [];
  if (encoding !== undefined && !/^(?:utf-?8|us-ascii)$/i.test(encoding))
    throw new BodyFault(`its encoding is ${encoding.slice(0, 64)} instead of UTF-8`);
}

/** Builds the value from the events of the parser. */
class XmlTree {
  readonly #open: OpenElement[] = [];
  readonly #result: XmlObject = Object.create(null);
  #elements = 0;

  root(): XmlObject {
    if (this.#elements === 0) throw new BodyFault('it has no element');
    return this.#result;
  }

  open(name: string): void {
    if (this.#open.length >= MAX_DEPTH) throw new BodyFault(`it nests deeper than ${MAX_DEPTH} elements`);
    if (this.#elements > 0 && this.#open.length === 0)
      throw new BodyFault('it has more than one root element');
    if (++this.#elements > MAX_ELEMENTS) throw new BodyFault(`it has more than ${MAX_ELEMENTS} elements`);
    this.#open.push({ name, children: undefined, attributes: 0, text: '' });
  }

  attribute(name: string, value: string): void {
    const element = this.#open.at(-1)!;
    if (++element.attributes > MAX_ATTRIBUTES)
      throw new BodyFault(`an element has more than ${MAX_ATTRIBUTES} attributes`);
    element.children ??= Object.create(null) as XmlObject;
    // The parser reports a repeated attribute once, with its first value.
    element.children[`@${name}`] = wellFormed(value);
  }

  text(part: string): void {
    const element = this.#open.at(-1);
    if (element) element.text += part;
  }

  close(): void {
    const { name, children, text } = this.#open.pop()!;
    const value: XmlValue = children ?? wellFormed(text);
    if (children && text.trim() !== '') children['#text'] = wellFormed(text);
    const parent = this.#open.at(-1);
    if (parent) parent.children ??= Object.create(null) as XmlObject;
    addChild(parent?.children ?? this.#result, name, value);
  }
}

function addChild(parent: XmlObject, name: string, value: XmlValue): void {
  const before = parent[name];
  if (before === undefined) parent[name] = value;
  else if (Array.isArray(before)) before.push(value);
  else parent[name] = [before, value];
}

/** Character references can encode half of a surrogate pair, which no store accepts. */
function wellFormed(text: string): string {
  if (text.isWellFormed()) return text;
  throw new BodyFault('it contains half of a surrogate pair');
}
