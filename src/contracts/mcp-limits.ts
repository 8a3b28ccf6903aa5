// Apart from the schemas, because the runner does not load zod.

/** Tools of one server. A longer list would not be read before it is approved. */
export const MAX_MCP_TOOLS = 200;
export const MAX_MCP_TOOL_NAME_CHARS = 128;
export const MAX_MCP_DESCRIPTION_CHARS = 8_000;
/** Characters of all approved tools together, as JSON. The manifest that contains them has at most 1 MiB. */
export const MAX_MCP_TOOLS_CHARS = 512 * 1024;
