/**
 * Descriptions by dotted path; `*` stands for every key of a map or item of a list. They are applied when a schema is
 * printed: as `.describe()` on each key they would cost every process some milliseconds at start.
 */
export type Descriptions = Readonly<Record<string, string>>;

/** Puts `prefix` before each path; the path `''` becomes the prefix itself. */
export function under(prefix: string, descriptions: Descriptions): Descriptions {
  return Object.fromEntries(
    Object.entries(descriptions).map(([path, text]) => [path === '' ? prefix : `${prefix}.${path}`, text]),
  );
}

/** A node of a JSON schema as zod prints it. */
export interface SchemaNode {
  description?: string;
  properties?: Record<string, SchemaNode>;
  additionalProperties?: SchemaNode | boolean;
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  oneOf?: SchemaNode[];
  allOf?: SchemaNode[];
}

/** Calls `visit` for each key of an object or map below `node`, parents first. */
export function walkSchema(
  node: SchemaNode,
  visit: (path: string, node: SchemaNode) => void,
  path = '',
): void {
  const below = (key: string) => (path === '' ? key : `${path}.${key}`);
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    visit(below(key), child);
    walkSchema(child, visit, below(key));
  }
  const { additionalProperties, items, anyOf = [], oneOf = [], allOf = [] } = node;
  if (typeof additionalProperties === 'object') walkSchema(additionalProperties, visit, below('*'));
  if (items) walkSchema(items, visit, below('*'));
  for (const variant of [...anyOf, ...oneOf, ...allOf]) walkSchema(variant, visit, path);
}

/** Returns a copy of `schema` in which every key that has a description carries it. */
export function describeSchema<Schema extends object>(schema: Schema, descriptions: Descriptions): Schema {
  const copy = structuredClone(schema);
  walkSchema(copy, (path, node) => {
    const description = descriptions[path];
    if (description !== undefined) node.description = description;
  });
  return copy;
}
