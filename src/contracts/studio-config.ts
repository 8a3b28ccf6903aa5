import { z } from 'zod';
import { SecretRef } from './adapters.ts';
import { Role, RoleNamespace } from './role.ts';

/** An http or https URL. */
export const HttpUrl = z.url({ protocol: /^https?$/, abort: true });

/** Returns whether answers of this URL are protected from changes on the network: by HTTPS, or on loopback. */
export function isTamperProof(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
}

/**
 * The identity provider (OpenID Connect) with which people sign in to the studio. `roles` maps values of `roleClaim` to
 * roles. @spec docs/studio.md "Sign in with your identity provider"
 */
export const StudioOidc = z.strictObject({
  issuer: HttpUrl.refine(
    isTamperProof,
    'must be https, because its keys decide who signs in (http is accepted for loopback only)',
  ),
  clientId: z.string().min(1).max(512),
  clientSecret: SecretRef.nullable().default(null),
  scopes: z
    .array(
      z
        .string()
        .max(256)
        .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be one scope without spaces'),
    )
    .max(50)
    .default(['openid', 'profile', 'email'])
    .refine((scopes) => scopes.includes('openid'), 'must include "openid"'),
  roleClaim: z.string().min(1).max(256),
  roles: z
    .record(z.string().min(1).max(256), z.strictObject({ role: Role, namespaceId: RoleNamespace }))
    .default({}),
});
export type StudioOidc = z.infer<typeof StudioOidc>;
