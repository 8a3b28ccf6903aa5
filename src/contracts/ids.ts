import { z } from 'zod';

/** An npm package name with or without a scope, such as `@acme/orders` or `github`. */
export const PluginId = z
  .string()
  .max(214)
  .regex(
    /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/,
    'must be a package name such as "github" or "@acme/orders"',
  )
  .brand('PluginId');
export type PluginId = z.infer<typeof PluginId>;

/** Event name of a webhook. The name is one URL segment. */
export const EventName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]*$/, 'must be one URL segment of letters, digits and . _ : -')
  .brand('EventName');
export type EventName = z.infer<typeof EventName>;

/**
 * Id of one instance of a webhook with several instances. Any text except `.` and `..` is valid. The id is
 * percent-encoded in URLs.
 */
export const InstanceId = z
  .string()
  .min(1)
  .max(256)
  .regex(/^(?!\.{1,2}$)/s, 'cannot be "." or "..", because clients remove them from a URL')
  .brand('InstanceId');
export type InstanceId = z.infer<typeof InstanceId>;

/** Id of a tenant. Tokens contain the id as `namespaceId`. Requests contain the id as `X-Tenant-ID`. */
export const NamespaceId = z
  .string()
  .max(128, 'must be at most 128 characters long')
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:@-]*$/,
    'must start with a letter or digit and contain only letters, digits and . _ : @ -',
  )
  .brand('NamespaceId');
export type NamespaceId = z.infer<typeof NamespaceId>;

/** Id of the caller in tokens, such as `ci`, `host_01…` or `container:<execution_id>`. */
export const HostId = z
  .string()
  .max(256)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'must be visible ASCII, because it is sent in a header')
  .brand('HostId');
export type HostId = z.infer<typeof HostId>;

/** Host id prefix of plugin containers. @spec JWT claims */
export const CONTAINER_HOST_PREFIX = 'container:';
/** Host id prefix of callers with a token of an external issuer: `oauth:<subject>`. */
export const OAUTH_HOST_PREFIX = 'oauth:';
/** Host id prefix of people who signed in to the studio with an identity provider: `oidc:<subject>`. */
export const OIDC_HOST_PREFIX = 'oidc:';
/** Host id prefix of calls with the token of a portal link: `portal:<application>`. */
export const PORTAL_HOST_PREFIX = 'portal:';
/** Host id of all unauthenticated callers. */
export const ANONYMOUS_HOST = 'anonymous';

const RESERVED_PREFIXES = [CONTAINER_HOST_PREFIX, OAUTH_HOST_PREFIX, OIDC_HOST_PREFIX, PORTAL_HOST_PREFIX];

/** A host id that users can assign. Ids that encode the authentication method of a caller are reserved. */
export const ChosenHostId = HostId.refine(
  (id) => id !== ANONYMOUS_HOST && !RESERVED_PREFIXES.some((prefix) => id.startsWith(prefix)),
  `must not be "${ANONYMOUS_HOST}" or start with ${RESERVED_PREFIXES.map((prefix) => `"${prefix}"`).join(', ')}: these ids are reserved`,
);

/**
 * One line of display text. Control characters and bidirectional overrides are rejected, because such characters could
 * spoof terminals.
 */
export const DisplayName = z
  .string()
  .min(1)
  .max(128)
  .regex(
    /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u,
    'must be one line of text without control characters',
  );
