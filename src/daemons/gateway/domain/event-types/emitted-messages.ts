import type { EmittedMessage, NewMessage } from '../../../../contracts/index.ts';
import { nearest } from '../../../../kit/data/nearest.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { PluginRegistry } from '../../../../plugins/index.ts';

export interface EmittedMessagesDeps {
  plugins: { readonly registry: PluginRegistry };
  publisher: {
    publish(message: NewMessage, options: { namespaceId: string; traceId: string }): Promise<EmittedMessage>;
  };
}

/** Stores the messages that plugins emit. A plugin may only emit types that its manifest declares. @spec docs/emit.md */
export class EmittedMessages {
  readonly #deps: EmittedMessagesDeps;

  constructor(deps: EmittedMessagesDeps) {
    this.#deps = deps;
  }

  /**
   * Throws PERMISSION_DENIED for an undeclared type, and the errors of the publisher. With `keepsFirst`, an earlier
   * message with the same key and other content counts as this one.
   */
  async emit(
    pluginId: string,
    { keepsFirst, ...message }: NewMessage & { keepsFirst: boolean },
    options: { namespaceId: string; traceId: string },
  ): Promise<EmittedMessage> {
    this.#requireDeclared(pluginId, message.type);
    try {
      const { id, duplicate } = await this.#deps.publisher.publish(message, options);
      return { id, duplicate };
    } catch (error) {
      const first = keepsFirst ? firstMessageOf(error) : undefined;
      if (first === undefined) throw error;
      return { id: first, duplicate: true };
    }
  }

  /**
   * Stores a message of a run that ended. The first message with the key counts, also if the other content differs.
   * Throws the other errors of the publisher.
   */
  async emitOfRun(
    message: NewMessage,
    options: { namespaceId: string; traceId: string },
  ): Promise<{ id: string }> {
    try {
      return { id: (await this.#deps.publisher.publish(message, options)).id };
    } catch (error) {
      const first = firstMessageOf(error);
      if (first === undefined) throw error;
      return { id: first };
    }
  }

  #requireDeclared(pluginId: string, type: string): void {
    const { events } = this.#deps.plugins.registry.require(pluginId).manifest;
    if (Object.hasOwn(events, type)) return;
    const meant = nearest(type, Object.keys(events));
    throw new PlatformError(
      'PERMISSION_DENIED',
      `The plugin ${pluginId} may not emit "${type}": its manifest must declare the type under "events".${meant ? ` Did you mean "${meant}"?` : ''}`,
      { details: { permission: 'events', type } },
    );
  }
}

/** Returns the id of the message that has the key, or undefined for another error. */
function firstMessageOf(error: unknown): string | undefined {
  if (!(error instanceof PlatformError) || error.code !== 'CONFLICT') return undefined;
  const { messageId } = error.details;
  return typeof messageId === 'string' ? messageId : undefined;
}
