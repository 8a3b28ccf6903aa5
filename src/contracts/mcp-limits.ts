// Separate from the schemas, so that the runner can import the limits without loading zod.

/** Tools of one server. Operators read the list before they approve it. */
export const MAX_MCP_TOOLS = 200;
export const MAX_MCP_TOOL_NAME_CHARS = 128;
export const MAX_MCP_DESCRIPTION_CHARS = 8_000;
/** Characters of all approved tools together, as JSON. The manifest that contains them has at most 1 MiB. */
export const MAX_MCP_TOOLS_CHARS = 512 * 1024;
