import { type DeclaredEventType, type EventDecl, eventSchemaRef } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../kit/data/json-value.ts';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import type { LoadedPlugin, PluginDescriber, PluginRegistry } from '../../../../plugins/index.ts';
import { readPluginJson } from '../../../plugin-runtime/schemas/plugin-json.ts';
import {
  bundleSchema,
  type JsonSchema,
  selfContained,
} from '../../../plugin-runtime/schemas/schema-bundle.ts';
import { type CheckInPlugin, EventSchema } from './event-schema.ts';

export interface EventTypesDeps {
  plugins: { readonly registry: PluginRegistry; readonly describer: PluginDescriber };
  clock: Clock;
}

/** Time after which an unreadable schema is read again. */
const RETRY_MS = minutes(1);

type Schemas = Map<string, EventSchema | null>;

/** The event types that running plugins declare, with their schemas. @spec docs/emit.md */
export class EventTypes {
  readonly #deps: EventTypesDeps;
  /** Declaring plugin of each type, for one registry. */
  #index: { registry: PluginRegistry; byType: Map<string, LoadedPlugin> } | undefined;
  /** Schemas by plugin. They are read on first use, because schemas in code need a process of the plugin. */
  readonly #schemas = new WeakMap<LoadedPlugin, Promise<Schemas>>();

  constructor(deps: EventTypesDeps) {
    this.#deps = deps;
  }

  /** Returns all declared types, ordered by name. An unreadable schema is replaced by its fault. */
  async list(): Promise<DeclaredEventType[]> {
    const types = [...this.#byType()].sort(([a], [b]) => (a < b ? -1 : 1));
    return Promise.all(
      types.map(async ([type, plugin]) => ({
        type,
        description: plugin.manifest.events[type]!.description ?? null,
        schema: await this.#schemaOf(plugin, type).then(
          (found) => found?.schema ?? null,
          (error) => ({ description: `The schema cannot be read: ${messageOf(error)}` }),
        ),
        pluginId: plugin.id,
      })),
    );
  }

  /**
   * Checks the data of a message. Returns undefined for undeclared types, which accept any data. Rejects with
   * VALIDATION_ERROR, which names the paths of the faults.
   */
  check(type: string, data: unknown): Promise<void> | undefined {
    const plugin = this.#byType().get(type);
    return plugin && this.#check(plugin, type, data as JsonValue);
  }

  async #check(plugin: LoadedPlugin, type: string, data: JsonValue): Promise<void> {
    const schema = await this.#schemaOf(plugin, type).catch((error: unknown) => {
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        `The schema of the event type "${type}" cannot be read: ${messageOf(error)}`,
        { details: { type, pluginId: plugin.id } },
      );
    });
    const issues = (await schema?.check(data)) ?? [];
    if (issues.length === 0) return;
    const [first] = issues;
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more, see details.issues)` : '';
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The data does not match the schema of the event type "${type}": ${first!.path}: ${first!.message}${more}`,
      { details: { issues, type, pluginId: plugin.id } },
    );
  }

  #byType(): Map<string, LoadedPlugin> {
    const { registry } = this.#deps.plugins;
    if (this.#index?.registry !== registry) {
      const declared = registry.plugins.flatMap((plugin) =>
        Object.keys(plugin.manifest.events).map((type): [string, LoadedPlugin] => [type, plugin]),
      );
      this.#index = { registry, byType: new Map(declared.reverse()) };
    }
    return this.#index.byType;
  }

  async #schemaOf(plugin: LoadedPlugin, type: string): Promise<EventSchema | null> {
    let read = this.#schemas.get(plugin);
    if (!read) {
      read = this.#read(plugin);
      this.#schemas.set(plugin, read);
      read.catch(() => this.#deps.clock.after(RETRY_MS, () => this.#schemas.delete(plugin)));
    }
    return (await read).get(type) ?? null;
  }

  async #read(plugin: LoadedPlugin): Promise<Schemas> {
    const { describer } = this.#deps.plugins;
    const checkInPlugin: CheckInPlugin = (schema, data) => describer.config(plugin, schema, data);
    const schemas = await this.#jsonSchemas(plugin);
    return new Map(
      [...schemas].map(([type, schema]) => [type, schema && new EventSchema(schema, checkInPlugin)]),
    );
  }

  async #jsonSchemas(plugin: LoadedPlugin): Promise<Map<string, JsonSchema | null>> {
    const events = Object.entries(plugin.manifest.events);
    const printed = await this.#zodSchemas(plugin, events);
    const open = (file: string) => readPluginJson(plugin.root, file);
    return new Map(
      await Promise.all(
        events.map(async ([type, event]): Promise<[string, JsonSchema | null]> => {
          const ref = eventSchemaRef(event);
          if (!ref) return [type, event.schema ? selfContained(event.schema) : null];
          if ('zod' in ref) return [type, selfContained(printed.get(ref.zod)!)];
          return [type, withoutWrapper(await bundleSchema(ref.$ref, open))];
        }),
      ),
    );
  }

  async #zodSchemas(
    plugin: LoadedPlugin,
    events: ReadonlyArray<[string, EventDecl]>,
  ): Promise<Map<string, JsonSchema>> {
    const refs = events.flatMap(([, event]) => {
      const ref = eventSchemaRef(event);
      return ref && 'zod' in ref ? [ref.zod] : [];
    });
    const names = [...new Set(refs)];
    const found = await this.#deps.plugins.describer.schemas(
      plugin,
      names.map((zod) => ({ zod, io: 'input' as const })),
    );
    return new Map(
      names.map((zod, index) => {
        const { schema, fault } = found[index] ?? { fault: 'it was not described' };
        if (!schema) throw new Error(`${zod}: ${fault}`);
        return [zod, schema];
      }),
    );
  }
}

/** Returns the only definition of a bundled schema that refers to no other one, and otherwise the schema as it is. */
function withoutWrapper(schema: JsonSchema): JsonSchema {
  const definitions = Object.values((schema.$defs ?? {}) as Record<string, JsonSchema>);
  const [only] = definitions;
  return only && definitions.length === 1 && !JSON.stringify(only).includes('"$ref"') ? only : schema;
}
