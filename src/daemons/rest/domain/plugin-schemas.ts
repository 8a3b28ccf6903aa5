import type {
  DescribedHandler,
  DescribedSchema,
  ManifestV3,
  SchemaRef,
  SchemaToDescribe,
} from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import { zodRefs } from '../../../plugins/index.ts';
import {
  bundleSchema,
  type JsonSchema,
  type ReadPluginJson,
  selfContained,
} from '../../plugin-runtime/schemas/schema-bundle.ts';

/**
 * Delay before a failed module runs again. Any client can cause such runs, and a hanging module uses 15 s of CPU time
 * per run.
 */
const RETRY_MS = minutes(1);

/** Schema references of one manifest entry. */
export interface Declared {
  handler: string;
  input?: SchemaRef | undefined;
  output?: SchemaRef | undefined;
}

export interface PluginSchemasDeps {
  manifest: ManifestV3;
  readJson: ReadPluginJson;
  /** `printZod` and `inspect` run the plugin's code. Both functions throw if the code fails. */
  printZod(asked: SchemaToDescribe[]): Promise<DescribedSchema[]>;
  inspect(handlers: string[]): Promise<DescribedHandler[]>;
  clock: Clock;
}

/**
 * Reads a plugin's schemas for API descriptions. Referenced definitions are copied into `$defs`. An unreadable schema
 * is replaced by a schema that accepts anything and states the reason.
 */
export class PluginSchemas {
  readonly #deps: PluginSchemasDeps;
  readonly #files = new Map<string, Promise<unknown>>();
  // Bundled schemas are cached, because many routes can use the same schema.
  readonly #bundles = new Map<string, Promise<JsonSchema>>();
  readonly #printed = new WeakMap<JsonSchema, JsonSchema>();
  readonly #describedZods: () => Promise<Map<string, DescribedSchema>>;
  readonly #describedHandlers: () => Promise<Map<string, DescribedHandler>>;

  constructor(deps: PluginSchemasDeps) {
    this.#deps = deps;
    this.#describedZods = once(deps.clock, () => this.#askForZods());
    this.#describedHandlers = once(deps.clock, () => this.#askForHandlers());
  }

  /**
   * Returns the schemas of a handler from the manifest, or else from the handler's code. A schema that is declared
   * nowhere is undefined.
   */
  async ofHandler({
    handler,
    input,
    output,
  }: Declared): Promise<{ input: JsonSchema | undefined; output: JsonSchema | undefined }> {
    return {
      input: input ? await this.#describe(input, 'input') : await this.#own(handler, 'input'),
      output: output ? await this.#describe(output, 'output') : await this.#own(handler, 'output'),
    };
  }

  async #describe(ref: SchemaRef, io: 'input' | 'output'): Promise<JsonSchema> {
    try {
      if ('$ref' in ref) return await this.#bundled(ref.$ref);
      const found = (await this.#describedZods()).get(`${io} ${ref.zod}`);
      if (found?.schema) return this.#selfContainedOnce(found.schema);
      return { description: `Checked against ${ref.zod}, which cannot be converted: ${found?.fault}` };
    } catch (error) {
      const name = '$ref' in ref ? ref.$ref : ref.zod;
      return { description: `The schema ${name} cannot be read: ${messageOf(error)}` };
    }
  }

  async #own(handler: string, io: 'input' | 'output'): Promise<JsonSchema | undefined> {
    try {
      const found = (await this.#describedHandlers()).get(handler);
      const schema = found && found.fault === undefined ? found[io] : null;
      return schema ? this.#selfContainedOnce(schema) : undefined;
    } catch {
      // The plugin's code cannot be loaded. Calls of its handlers report the error.
      return undefined;
    }
  }

  #open(file: string): Promise<unknown> {
    const found = this.#files.get(file) ?? this.#deps.readJson(file);
    this.#files.set(file, found);
    return found;
  }

  #bundled(ref: string): Promise<JsonSchema> {
    const found = this.#bundles.get(ref) ?? bundleSchema(ref, (file) => this.#open(file));
    this.#bundles.set(ref, found);
    return found;
  }

  #selfContainedOnce(schema: JsonSchema): JsonSchema {
    const found = this.#printed.get(schema) ?? selfContained(schema);
    this.#printed.set(schema, found);
    return found;
  }

  #askForZods(): Promise<Map<string, DescribedSchema>> {
    const asked = zodRefs(this.#deps.manifest).map(({ zod, io }) => ({ zod, io }));
    return answers(
      asked.map(({ zod, io }) => `${io} ${zod}`),
      () => this.#deps.printZod(asked),
    );
  }

  #askForHandlers(): Promise<Map<string, DescribedHandler>> {
    const { manifest, inspect } = this.#deps;
    const declared = [...(manifest.rest?.routes ?? []), ...manifest.commands];
    const silent = [
      ...new Set(declared.filter(({ input, output }) => !input || !output).map(({ handler }) => handler)),
    ];
    return answers(silent, () => inspect(silent));
  }
}

/**
 * Calls `ask` once, on first use, because each call starts a process. If the call fails, `ask` is called again at the
 * first use after `RETRY_MS`.
 */
function once<Answer>(clock: Clock, ask: () => Promise<Answer>): () => Promise<Answer> {
  let asked: Promise<Answer> | undefined;
  return () => {
    asked ??= ask().catch((error: unknown) => {
      clock.after(RETRY_MS, () => {
        asked = undefined;
      });
      throw error;
    });
    return asked;
  };
}

async function answers<Answer>(
  keys: readonly string[],
  ask: () => Promise<Answer[]>,
): Promise<Map<string, Answer>> {
  const found = keys.length === 0 ? [] : await ask();
  return new Map(keys.flatMap((key, index) => (index < found.length ? [[key, found[index]!]] : [])));
}
