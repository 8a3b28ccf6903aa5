import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';

// The endpoints below access plugin objects, which the state service stores. Object content is encoded as base64, as in
// messages between the runner and the platform.
const Namespace = z.string().min(1).max(256);
const Key = z.string().min(1).max(512);
const params = z.object({ namespace: Namespace, key: Key });

export const ObjectEntry = z
  .object({ key: z.string(), bytes: z.number().int(), modifiedAt: z.number().describe('Epoch milliseconds') })
  .meta({ id: 'StoredObject' });

const tags = ['storage'];

/** Returns the content of an object that a plugin stored with `ctx.storage`. @spec docs/decisions/0053 */
export const readObject = endpoint({
  method: 'GET',
  path: '/api/v1/storage/:namespace/:key',
  summary: 'Read an object',
  tags,
  params,
  reply: ObjectEntry.extend({ data: z.string().describe('Base64') }).omit({ key: true }),
  errors: ['NOT_FOUND', 'ADAPTER_NOT_CONFIGURED'],
});

export const writeObject = endpoint({
  method: 'PUT',
  path: '/api/v1/storage/:namespace/:key',
  summary: 'Write an object atomically',
  tags,
  params,
  body: z.strictObject({ data: z.string().describe('Base64') }),
  reply: z.object({ bytes: z.number().int() }),
  errors: ['VALIDATION_ERROR', 'PAYLOAD_TOO_LARGE', 'QUOTA_EXCEEDED', 'ADAPTER_NOT_CONFIGURED'],
});

export const deleteObject = endpoint({
  method: 'DELETE',
  path: '/api/v1/storage/:namespace/:key',
  summary: 'Delete an object',
  tags,
  params,
  reply: z.object({ deleted: z.boolean() }),
});

export const statObject = endpoint({
  method: 'GET',
  path: '/api/v1/storage/:namespace/:key/stat',
  summary: 'Show the metadata of an object',
  tags,
  params,
  reply: ObjectEntry,
  errors: ['NOT_FOUND'],
});

export const listObjects = endpoint({
  method: 'GET',
  path: '/api/v1/storage/:namespace',
  summary: 'List objects by key prefix, in key order',
  tags,
  params: z.object({ namespace: Namespace }),
  query: z.strictObject({
    prefix: z.string().max(512).default(''),
    cursor: z.string().max(1024).optional(),
    limit: z.coerce.number().int().min(1).max(1000).default(100),
  }),
  reply: page(ObjectEntry),
});
