/**
 * Descriptions of schema keys by dotted path. `*` matches every map key or list item. Descriptions are added only when
 * a schema is printed, because `.describe()` calls would slow down every start.
 */
export type Descriptions = Readonly<Record<string, string>>;

/** Puts `prefix` before each path. The empty path becomes the prefix itself. */
export function under(prefix: string, descriptions: Descriptions): Descriptions {
  return Object.fromEntries(
    Object.entries(descriptions).map(([path, text]) => [path === '' ? prefix : `${prefix}.${path}`, text]),
  );
}

/** A node of a JSON schema printed by zod. */
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
  const childPath = (key: string) => (path === '' ? key : `${path}.${key}`);
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    visit(childPath(key), child);
    walkSchema(child, visit, childPath(key));
  }
  const { additionalProperties, items, anyOf = [], oneOf = [], allOf = [] } = node;
  if (typeof additionalProperties === 'object') walkSchema(additionalProperties, visit, childPath('*'));
  if (items) walkSchema(items, visit, childPath('*'));
  for (const variant of [...anyOf, ...oneOf, ...allOf]) walkSchema(variant, visit, path);
}

/** Returns a copy of `schema` with the descriptions added. */
export function describeSchema<Schema extends object>(schema: Schema, descriptions: Descriptions): Schema {
  const copy = structuredClone(schema);
  walkSchema(copy, (path, node) => {
    const description = descriptions[path];
    if (description !== undefined) node.description = description;
  });
  return copy;
}
