import { z } from 'zod';
import { LIMITS } from './limits.ts';
import { SECRET_REF } from './secret-name.ts';

const PositiveInt = z.number().int().positive();
const HttpUrl = z.url({ protocol: /^https?$/ });
const Ms = PositiveInt;

/**
 * Reference to a secret in the environment or in the `.env` file beside the config. The config never contains the
 * secret, so the config can be printed safely.
 */
export const SecretRef = z.string().regex(
  /^\$\{[A-Za-z_]\w*\}$/,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
  'must name an environment variable, such as "${OPENAI_API_KEY}": the config must not contain the secret itself',
);

/** Reference to a secret in the environment, or to a stored secret of the namespace `default`. */
const AdapterSecretRef = z.string().regex(
  SECRET_REF,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
  'must name an environment variable or a stored secret, such as "${OPENAI_API_KEY}" or "${secret:OPENAI_API_KEY}": the config must not contain the secret itself',
);

const objectBytes = PositiveInt.max(LIMITS.storageObjectBytes).default(LIMITS.storageObjectBytes);

const FileStorage = z.strictObject({
  type: z.literal('files'),
  maxObjectBytes: objectBytes,
  quotaBytes: PositiveInt.default(1024 ** 3),
});

const S3Storage = z.strictObject({
  type: z.literal('s3'),
  bucket: z.string().min(1),
  region: z.string().min(1).default('us-east-1'),
  endpoint: HttpUrl.nullable().default(null),
  pathStyle: z.boolean().default(false),
  prefix: z.string().default(''),
  accessKeyId: AdapterSecretRef.nullable().default(null),
  secretAccessKey: AdapterSecretRef.nullable().default(null),
  sessionToken: AdapterSecretRef.nullable().default(null),
  timeoutMs: Ms.default(30_000),
  maxObjectBytes: objectBytes,
});

/** A price in US dollars per million tokens. */
const Price = z.strictObject({
  inputPerMillion: z.number().min(0),
  outputPerMillion: z.number().min(0).default(0),
});
export type ModelPrice = z.infer<typeof Price>;

/** Settings common to all OpenAI-compatible endpoints. */
const endpoint = {
  baseUrl: HttpUrl,
  apiKey: AdapterSecretRef.nullable().default(null),
  timeoutMs: Ms.default(60_000),
  maxAttempts: z.number().int().min(1).max(10).default(3),
  maxResponseBytes: PositiveInt.default(4 * 1024 ** 2),
  prices: z.record(z.string().min(1), Price).default({}),
};

/** Model tier for calls that do not specify a tier. */
export const DEFAULT_TIER = 'default';

const LanguageModel = z.strictObject({
  ...endpoint,
  models: z
    .record(z.string().min(1).max(64), z.string().min(1))
    .refine((models) => Object.hasOwn(models, DEFAULT_TIER), 'must name a model for the tier "default"'),
  maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
  maxOutputTokens: PositiveInt.default(4096),
});

const Embeddings = z.strictObject({
  ...endpoint,
  // The default fits 256 vectors of 3,072 dimensions as JSON.
  maxResponseBytes: PositiveInt.default(16 * 1024 ** 2),
  model: z.string().min(1),
  dimensions: PositiveInt.nullable().default(null),
});

const VectorStore = z.strictObject({
  type: z.literal('sqlite').default('sqlite'),
  maxVectors: PositiveInt.default(1_000_000),
});

/** Backends of `ctx.storage`, `ctx.llm`, `ctx.embeddings` and `ctx.vectorStore`. @spec docs/operations.md "Adapters" */
export const AdaptersConfig = z.strictObject({
  storage: z.discriminatedUnion('type', [FileStorage, S3Storage]).nullable().prefault({ type: 'files' }),
  llm: LanguageModel.nullable().default(null),
  embeddings: Embeddings.nullable().default(null),
  vectorStore: VectorStore.nullable().prefault({}),
});
export type AdaptersConfig = z.infer<typeof AdaptersConfig>;
export type FileStorageConfig = z.infer<typeof FileStorage>;
export type S3StorageConfig = z.infer<typeof S3Storage>;
export type LlmConfig = z.infer<typeof LanguageModel>;
export type EmbeddingsConfig = z.infer<typeof Embeddings>;
export type VectorStoreConfig = z.infer<typeof VectorStore>;

/** Adapter names, as used in `adapters.<name>` and `permissions.platform.<name>`. */
export const ADAPTER_NAMES = ['storage', 'llm', 'embeddings', 'vectorStore'] as const;
export type AdapterName = (typeof ADAPTER_NAMES)[number];
