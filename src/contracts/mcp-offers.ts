import { z } from 'zod';
import { offeredName, TOOL_NAME } from './mcp-exposure.ts';

const MAX_OFFERS = 100;

const Id = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'must be one word of letters, digits and . _ : -');
const shown = {
  title: z.string().min(1).max(100).optional(),
  description: z.string().min(1).max(2000).optional(),
};

/** Declaration of a prompt, whose text a command of the plugin returns. @spec docs/mcp.md "Offer prompts and resources" */
export const PromptDecl = z.strictObject({
  id: Id,
  /** Name of the prompt. The default follows from the ids. */
  name: z.string().regex(TOOL_NAME, 'must consist of 1 to 48 of a-z, 0-9, _ and -').optional(),
  ...shown,
  arguments: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must have 1 to 64 letters, digits, _ and -'),
        description: z.string().min(1).max(1000).optional(),
        required: z.boolean().default(false),
        /** Values that clients offer for completion. */
        values: z.array(z.string().max(200)).max(1000).default([]),
      }),
    )
    .max(20)
    .default([]),
  command: Id,
});
export type PromptDecl = z.infer<typeof PromptDecl>;

/** A URI such as `shop://orders`, or with parameters in braces, such as `shop://orders/{id}`. */
const UriTemplate = z
  .string()
  .max(500)
  .regex(
    /^[a-z][a-z0-9+.-]*:\/\/(?:[\w.~%:@!$&'()*+,;=/-]|\{[A-Za-z_]\w*\})+$/,
    'must be a URI such as "shop://orders/{id}"',
  )
  // One parameter a segment keeps matching linear.
  .refine((uri) => uri.split('/').every((segment) => segment.split('{').length <= 2), {
    message: 'must have at most one parameter between two slashes',
  })
  .refine((uri) => !uri.startsWith('svc:'), {
    message: 'must not begin with svc:, the scheme of the platform',
  });

/** Declaration of a resource, whose content a command of the plugin returns. @spec docs/mcp.md "Offer prompts and resources" */
export const ResourceDecl = z.strictObject({
  uri: UriTemplate,
  name: z.string().min(1).max(100),
  ...shown,
  mimeType: z.string().max(200).optional(),
  command: Id,
});
export type ResourceDecl = z.infer<typeof ResourceDecl>;

/** What a plugin offers to MCP clients besides its commands. */
export const McpOffers = z.strictObject({
  prompts: z.array(PromptDecl).max(MAX_OFFERS).default([]),
  resources: z.array(ResourceDecl).max(MAX_OFFERS).default([]),
});
export type McpOffers = z.infer<typeof McpOffers>;

/** Names of the platform's own prompts, which plugins must not take. A test compares them. */
export const PLATFORM_PROMPT_NAMES: readonly string[] = ['why_did_this_delivery_fail', 'write_a_plugin'];

/** Returns the name of a prompt: `acme_shop_refund` for the prompt `refund` of `@acme/shop`. */
export function promptName(pluginId: string, { id, name }: Pick<PromptDecl, 'id' | 'name'>): string {
  return name ?? offeredName(`${pluginId}_${id}`);
}

/** Returns what is wrong with the name of a prompt, or undefined. */
export function promptNameProblem(name: string): string | undefined {
  if (!TOOL_NAME.test(name))
    return `the prompt name "${name}" has ${name.length} characters, at most 48 are allowed: set "name"`;
  if (PLATFORM_PROMPT_NAMES.includes(name))
    return `the platform has a prompt "${name}" of its own: set "name"`;
  return undefined;
}

/** Returns the scheme of a URI. The resources of one scheme belong to one plugin. */
export function schemeOf(uri: string): string {
  return uri.slice(0, uri.indexOf(':'));
}
