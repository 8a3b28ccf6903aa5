import { Validator } from '@seriousme/openapi-schema-validator';

interface Document {
  paths: Record<
    string,
    Record<string, { operationId?: string; parameters?: Array<{ name: string; in: string }> }>
  >;
}

/** What is wrong with an API description: by the OpenAPI 3.1 schema, and what that schema cannot see. Empty when it is sound. */
export async function openApiFaults(document: unknown): Promise<string[]> {
  const faults: string[] = [];
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document) as Record<string, unknown>);
  if (!valid) faults.push(`not OpenAPI: ${JSON.stringify(errors)}`);
  if (validator.version !== '3.1') faults.push(`version ${validator.version} instead of 3.1`);
  faults.push(...danglingRefs(document), ...pathFaults(document as Document));
  return faults;
}

function danglingRefs(document: unknown): string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, item] of Object.entries(value)) {
      if (key === '$ref' && typeof item === 'string' && resolve(document, item) === undefined)
        found.push(item);
      visit(item);
    }
  };
  visit(document);
  return found.map((ref) => `nothing at ${ref}`);
}

function resolve(document: unknown, ref: string): unknown {
  if (!ref.startsWith('#/')) return undefined;
  return ref
    .slice(2)
    .split('/')
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((value, part) => (value as Record<string, unknown> | undefined)?.[part], document);
}

/** Operation ids are unique, and the parameters of a path are exactly those declared. */
function pathFaults({ paths }: Document): string[] {
  const ids = new Map<string, string>();
  const faults: string[] = [];
  for (const [path, item] of Object.entries(paths)) {
    const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name!).sort();
    for (const [method, operation] of Object.entries(item)) {
      const where = `${method} ${path}`;
      const declared = (operation.parameters ?? [])
        .filter((item) => item.in === 'path')
        .map((item) => item.name);
      if (declared.sort().join() !== names.join())
        faults.push(`${where}: path parameters ${declared} for ${names}`);
      const { operationId = '' } = operation;
      if (ids.has(operationId))
        faults.push(`${where}: operationId ${operationId} also of ${ids.get(operationId)}`);
      ids.set(operationId, where);
    }
  }
  return faults;
}
