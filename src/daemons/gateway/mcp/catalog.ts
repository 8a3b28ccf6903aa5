import type { McpCall } from './platform-calls.ts';
import type { Tool } from './tool.ts';
import type { ToolAccess } from './tool-access.ts';
import { deliveryTools } from './tools/deliveries.ts';
import { eventTools } from './tools/events.ts';
import { recordTools } from './tools/records.ts';
import { runTools } from './tools/runs.ts';

export const PLATFORM_TOOLS: readonly Tool[] = [...deliveryTools, ...runTools, ...recordTools, ...eventTools];

/** The tools besides those of the platform. */
export interface ToolSource {
  list(call: McpCall): Promise<readonly Tool[]>;
  find(call: McpCall, name: string): Promise<Tool | undefined>;
}

/** Finds tools by name and by caller. */
export class ToolCatalog {
  readonly #access: ToolAccess;
  readonly #others: ToolSource;

  constructor(access: ToolAccess, others: ToolSource) {
    this.#access = access;
    this.#others = others;
  }

  /** Returns the tools that the caller may call, ordered by name. */
  async list(call: McpCall): Promise<Tool[]> {
    const tools = [...PLATFORM_TOOLS, ...(await this.#others.list(call))];
    return tools
      .filter((tool) => this.#access.allows(call.caller, tool))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async find(call: McpCall, name: string): Promise<Tool | undefined> {
    return PLATFORM_TOOLS.find((tool) => tool.name === name) ?? this.#others.find(call, name);
  }
}
