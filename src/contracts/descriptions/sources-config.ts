import type { Descriptions } from './describe.ts';

/** Keys of `sources` in `svc.config.json`. */
export const SOURCES_DESCRIPTIONS: Descriptions = {
  '': 'URLs that take deliveries without a plugin (docs/sources.md).',
  forwardAllow:
    'Private hosts that callers other than operators may forward to, such as "10.0.0.5" or "intranet:8080".',
  declared: 'Sources by namespace and name. The API cannot change them.',
  'declared.*.*.provider': 'Provider of the catalogue.',
  'declared.*.*.auth': 'Authentication of the sender, instead of a provider.',
  'declared.*.*.auth.type': '"token", "secret", "hmac", "signature", "basic", "jwt" or "provider".',
  'declared.*.*.description': 'Text for people.',
  'declared.*.*.body': "Format of the body. Default: the provider's, or JSON.",
  'declared.*.*.contentTypes': 'Accepted media types.',
  'declared.*.*.idempotencyKey': 'Dot path into the body, or "header:<name>".',
  'declared.*.*.requestsPerMinute': 'Deliveries accepted per minute.',
  'declared.*.*.secret':
    // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
    'Environment variable with the secret, such as "${STRIPE_SECRET}". Without it, a secret is generated.',
  'declared.*.*.destinations': 'Destinations by name. Each has one of forward, workflow, queue and command.',
  'declared.*.*.destinations.*.forward': 'URL that receives the original request.',
  'declared.*.*.destinations.*.workflow': 'Id of the workflow to run.',
  'declared.*.*.destinations.*.queue': 'Queue that keeps deliveries for programs.',
  'declared.*.*.destinations.*.command': 'Command of a plugin, as "<plugin>/<command>".',
  'declared.*.*.destinations.*.filter':
    'CEL expression. Deliveries for which it is false are not handed over.',
  'declared.*.*.destinations.*.transform': 'CEL expression whose value replaces the body.',
  'declared.*.*.destinations.*.retry': 'Retry policy; null: the default of the kind.',
  'declared.*.*.destinations.*.retry.maxAttempts': 'Attempts in all.',
  'declared.*.*.destinations.*.retry.backoff': 'Time between attempts.',
  'declared.*.*.destinations.*.retry.backoff.initialMs': 'After the first attempt.',
  'declared.*.*.destinations.*.retry.backoff.factor': 'Growth with each attempt.',
  'declared.*.*.destinations.*.retry.backoff.maxMs': 'Largest time.',
  'declared.*.*.destinations.*.concurrency': 'Attempts in flight.',
  'declared.*.*.destinations.*.orderBy': 'Dot path into the body. Equal values keep their order.',
  'declared.*.*.destinations.*.timeoutMs': 'Time of an attempt.',
};
