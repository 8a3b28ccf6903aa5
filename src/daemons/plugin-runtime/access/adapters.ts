import {
  type AdapterName,
  deleteObject,
  deleteVectors,
  listObjects,
  readObject,
  searchVectors,
  statObject,
  upsertVectors,
  writeObject,
} from '../../../contracts/index.ts';
import { createClient } from '../../../http/index.ts';
import { resolveAnySecret, unsetSecrets } from '../../../kit/config/secret-ref.ts';
import { adapterMissing } from '../../../kit/errors/adapter-missing.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type {
  AdapterParts,
  ObjectAccess,
  ObjectScope,
  SecretAccess,
  VectorAccess,
  VectorScope,
} from '../../../plugins/index.ts';
import type { Resources } from '../../define-daemon.ts';
import { createAdapterWatch } from './adapter-metrics.ts';
import { callOptions } from './call-options.ts';
import { storedSecrets } from './secrets.ts';

/**
 * Creates the adapters for plugins. The state service stores objects and vectors. This process calls models itself,
 * because their replies are streamed.
 */
export function createAdapters(resources: Resources, access: SecretAccess): AdapterParts {
  const { config, metrics } = resources;
  const { llm, embeddings } = config.adapters;
  const secrets = { env: resources.env, stored: storedSecrets(resources, access) };
  return {
    objects: objectAccess(resources),
    vectors: vectorAccess(resources),
    model: perKey(async (made) => {
      if (llm === null) throw adapterMissing('llm');
      const apiKey = await resolveAnySecret(llm.apiKey, secrets, 'adapters.llm.apiKey');
      const { openAiModel } = await import('../../../plugins/models/openai.ts');
      return made(apiKey, () => openAiModel(llm, { ...resources, apiKey }));
    }),
    embedder: perKey(async (made) => {
      if (embeddings === null) throw adapterMissing('embeddings');
      const apiKey = await resolveAnySecret(embeddings.apiKey, secrets, 'adapters.embeddings.apiKey');
      const { openAiEmbedder } = await import('../../../plugins/models/openai.ts');
      return made(apiKey, () => openAiEmbedder(embeddings, { ...resources, apiKey }));
    }),
    watch: createAdapterWatch(metrics),
  };
}

/** Returns the missing config sections and environment variables that will make calls of these adapters fail. */
export function adapterFaults(
  { config: { adapters }, env }: Pick<Resources, 'config' | 'env'>,
  asked: readonly AdapterName[],
): Array<{ name: AdapterName; key: string; why: string }> {
  return asked.flatMap((name) => {
    const key = `adapters.${name}`;
    if (adapters[name] === null) return [{ name, key, why: `the config has no ${key}` }];
    return unsetSecrets(adapters[name], env, key).map((unset) => ({
      name,
      key: unset.key,
      why: `${unset.key} names ${unset.name}, which is not set`,
    }));
  });
}

type Access = Pick<Resources, 'peers' | 'keys'>;

/** Creates the access to the objects of plugins, which the state service stores. */
export function objectAccess({ peers, keys }: Access): ObjectAccess {
  const client = createClient({ url: () => peers.urlOf('state'), peer: 'state' });
  const options = callOptions(keys);
  const at = ({ namespace }: ObjectScope, key: string) => ({ params: { namespace, key } });
  return {
    read: (scope, key) => present(client.call(readObject, at(scope, key), options(scope))),
    write: (scope, key, data) =>
      client.call(writeObject, { ...at(scope, key), body: { data } }, options(scope)),
    delete: async (scope, key) => (await client.call(deleteObject, at(scope, key), options(scope))).deleted,
    stat: (scope, key) => present(client.call(statObject, at(scope, key), options(scope))),
    list: (scope, query) =>
      client.call(listObjects, { params: { namespace: scope.namespace }, query }, options(scope)),
  };
}

function vectorAccess({ peers, keys }: Access): VectorAccess {
  const client = createClient({ url: () => peers.urlOf('state'), peer: 'state' });
  const options = callOptions(keys);
  const at = ({ namespace, collection }: VectorScope) => ({ params: { namespace, collection } });
  return {
    upsert: (scope, body) => client.call(upsertVectors, { ...at(scope), body }, options(scope)),
    search: (scope, body) => client.call(searchVectors, { ...at(scope), body }, options(scope)),
    delete: (scope, body) => client.call(deleteVectors, { ...at(scope), body }, options(scope)),
  };
}

/** Converts a NOT_FOUND error to undefined. */
async function present<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  }
}

/** Returns the value that was made for the same key last, or makes it. */
type Made<Value> = (key: string | undefined, make: () => Value) => Value;

/** Returns a function that makes a client again when its key has changed. The key is read for each use. */
function perKey<Value>(make: (made: Made<Value>) => Promise<Value>): () => Promise<Value> {
  let last: { key: string | undefined; value: Value } | undefined;
  return () =>
    make((key, create) => {
      if (!last || last.key !== key) last = { key, value: create() };
      return last.value;
    });
}
