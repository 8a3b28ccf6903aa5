import type { OpenApiDocument } from '../../../../http/openapi.ts';
import { isRecord } from '../../../../kit/data/is-record.ts';
import { comment, field, schemaType } from './schema-type.ts';

type Part = Record<string, unknown>;

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;
const PLACES = ['query', 'header', 'path', 'cookie'] as const;

export interface ClientOfDocument {
  document: OpenApiDocument;
  /** Default address of the client. */
  baseUrl: string;
  /** Version of svc, for the comment at the top. */
  version: string;
}

/**
 * Returns a TypeScript module with the types of all operations, in the form that openapi-fetch expects, and a function
 * that creates the client. @spec docs/decisions/0263
 */
export function clientText({ document, baseUrl, version }: ClientOfDocument): string {
  const schemas = Object.entries(document.components?.schemas ?? {}).map(([key, schema]) =>
    field({ key, type: schemaType(schema), isOptional: false, about: schema }),
  );
  const paths = Object.entries(document.paths).map(([path, operations]) =>
    field({ key: path, type: pathType(operations), isOptional: false }),
  );
  const parts = [
    `// Written by \`svc openapi --client ts\` of svc ${version.replaceAll(/[^\w.+-]/g, '')}. Do not edit.`,
    "// Needs openapi-fetch: npm install openapi-fetch\nimport createClient, { type Client, type ClientOptions } from 'openapi-fetch';",
    `export interface paths {\n${paths.join('\n')}\n}`,
    `export interface components {\nschemas: {\n${schemas.join('\n')}\n};\n}`,
    clientFunction(baseUrl),
  ];
  return `${indented(parts.join('\n\n'))}\n`;
}

function clientFunction(baseUrl: string): string {
  return `export type SvcClient = Client<paths>;

export interface SvcClientOptions extends ClientOptions {
/** Access token, or a function that returns one before each request. */
token?: string | (() => string | Promise<string>);
}

/** Creates a client of the platform. Calls resolve with \`data\` or \`error\`, and with \`response\`. */
export function createSvcClient({ token, ...options }: SvcClientOptions = {}): SvcClient {
const client = createClient<paths>({ baseUrl: ${JSON.stringify(baseUrl)}, ...options });
if (token !== undefined) {
client.use({
async onRequest({ request }) {
request.headers.set('authorization', \`Bearer \${typeof token === 'string' ? token : await token()}\`);
return request;
},
});
}
return client;
}`;
}

function pathType(operations: Part): string {
  const present = METHODS.filter((method) => isRecord(operations[method]));
  const fields = present.map((method) => {
    const operation = operations[method] as Part;
    return `${comment(String(operation.summary ?? ''))}${method}: ${operationType(operation)};`;
  });
  const absent = METHODS.filter((method) => !present.includes(method)).map((method) => `${method}?: never;`);
  return `{\nparameters: {};\n${[...fields, ...absent].join('\n')}\n}`;
}

function operationType({ parameters, requestBody, responses }: Part): string {
  const listed = Array.isArray(parameters) ? parameters.filter(isRecord) : [];
  const places = PLACES.map((place) =>
    parametersType(
      place,
      listed.filter((one) => one.in === place),
    ),
  );
  const answers = Object.entries(isRecord(responses) ? responses : {}).map(([status, response]) =>
    field({ key: status, type: responseType(response), isOptional: false, about: response }),
  );
  return `{\nparameters: {\n${places.join('\n')}\n};\n${bodyType(requestBody)}\nresponses: {\n${answers.join('\n')}\n};\n}`;
}

function parametersType(place: (typeof PLACES)[number], parameters: Part[]): string {
  if (parameters.length === 0) return `${place}?: never;`;
  const fields = parameters.map((parameter) =>
    field({
      key: String(parameter.name),
      type: schemaType(parameter.schema),
      isOptional: parameter.required !== true,
      about: parameter,
    }),
  );
  const isOptional = parameters.every(({ required }) => required !== true);
  return `${place}${isOptional ? '?' : ''}: {\n${fields.join('\n')}\n};`;
}

function bodyType(body: unknown): string {
  if (!isRecord(body)) return 'requestBody?: never;';
  return `requestBody${body.required === true ? '' : '?'}: {\n${contentType(body.content)}\n};`;
}

function responseType(response: unknown): string {
  const content = isRecord(response) ? response.content : undefined;
  return `{\nheaders: { [name: string]: unknown };\n${contentType(content)}\n}`;
}

function contentType(content: unknown): string {
  if (!isRecord(content) || Object.keys(content).length === 0) return 'content?: never;';
  const types = Object.entries(content).map(([key, media]) =>
    field({ key, type: mediaType(key, isRecord(media) ? media.schema : undefined), isOptional: false }),
  );
  return `content: {\n${types.join('\n')}\n};`;
}

/** Returns the type of a body. Bodies other than JSON are texts, unless their schema has another type. */
function mediaType(name: string, schema: unknown): string {
  const type = schemaType(schema);
  return type === 'unknown' && name.startsWith('text/') ? 'string' : type;
}

/** Indents lines by the brackets at their ends. Lines of comments keep the indentation of their member. */
function indented(text: string): string {
  let depth = 0;
  return text
    .split('\n')
    .map((line) => {
      if (/^(?:\/?\*| \*|\/\/)/.test(line)) return `${'  '.repeat(depth)}${line}`;
      const code = line.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
      const closes = /^[}\])]+/.exec(code)?.[0].length ?? 0;
      const opened = [...code].reduce(
        (sum, char) => sum + (/[{[(]/.test(char) ? 1 : /[}\])]/.test(char) ? -1 : 0),
        0,
      );
      const at = Math.max(depth - closes, 0);
      depth = Math.max(depth + opened, 0);
      return line === '' ? '' : `${'  '.repeat(at)}${line}`;
    })
    .join('\n');
}
