import { z } from 'zod';

/** An npm-style name, scoped or not: `github`, `@acme/orders`. */
export const PluginId = z
  .string()
  .max(214)
  .regex(
    /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/,
    'must be a package name such as "github" or "@acme/orders"',
  )
  .brand('PluginId');
export type PluginId = z.infer<typeof PluginId>;

/** A webhook's event name: one URL segment. */
export const EventName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'must be one URL segment of letters, digits and . _ : -')
  .brand('EventName');
export type EventName = z.infer<typeof EventName>;

/** Names one instance of a `multi` webhook; any text but `.` and `..`, percent-encoded in the URL. */
export const InstanceId = z
  .string()
  .min(1)
  .max(256)
  .regex(/^(?!\.{1,2}$)/s, 'cannot be "." or "..": clients resolve these away from a URL')
  .brand('InstanceId');
export type InstanceId = z.infer<typeof InstanceId>;

/** A tenant. One word for both sides of the spec: `namespaceId` in tokens, tenant id in `X-Tenant-ID`. */
export const NamespaceId = z
  .string()
  .max(128, 'must be at most 128 characters long')
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:@-]*$/,
    'must start with a letter or digit and hold only letters, digits and . _ : @ -',
  )
  .brand('NamespaceId');
export type NamespaceId = z.infer<typeof NamespaceId>;

/** The caller's identity as tokens carry it: `ci`, `host_01…`, `container:<execution_id>`. */
export const HostId = z
  .string()
  .max(256)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'must be visible ASCII: it travels in a header')
  .brand('HostId');
export type HostId = z.infer<typeof HostId>;

/** How the host id of a plugin's container begins. @spec JWT claims */
export const CONTAINER_HOST_PREFIX = 'container:';
/** How the host ids of callers begin who showed a token of a configured issuer: `oauth:<subject>`. */
export const OAUTH_HOST_PREFIX = 'oauth:';
/** The host id of a caller who showed no identity. */
export const ANONYMOUS_HOST = 'anonymous';

/** A host id that somebody may choose: those that say how a caller was identified are the platform's own to give. */
export const ChosenHostId = HostId.refine(
  (id) => id !== ANONYMOUS_HOST && !id.startsWith(CONTAINER_HOST_PREFIX) && !id.startsWith(OAUTH_HOST_PREFIX),
  `must not be "${ANONYMOUS_HOST}" nor begin with "${CONTAINER_HOST_PREFIX}" or "${OAUTH_HOST_PREFIX}": such ids are given by the platform alone`,
);

/** What people call a thing: any text in one line. Control characters and bidirectional overrides would forge what a terminal shows. */
export const DisplayName = z
  .string()
  .min(1)
  .max(128)
  .regex(
    /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u,
    'must be one line of text without control characters',
  );

/** `<file>#<export>`: a file inside the plugin's folder and one of its exports. */
export const HandlerRef = z
  .string()
  .max(512)
  .regex(/^[^#\0\\]+#[A-Za-z_$][\w$]*$/, 'must be "<file>#<export>", for example "dist/hooks.js#onPush"');
export type HandlerRef = z.infer<typeof HandlerRef>;
