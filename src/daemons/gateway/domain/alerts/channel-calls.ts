import { lookup as dnsLookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { ALL_NAMESPACES, type AlertAttempt, type AlertChannelSettings } from '../../../../contracts/index.ts';
import { type Environment, storedSecretOf } from '../../../../kit/config/secret-ref.ts';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import type { Seal } from '../../../../kit/security/keys.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import { privateKindOf } from '../../../../plugins/services/addresses.ts';
import { sealedColumns } from '../../../../store/ports/index.ts';
import type { OutgoingClient } from '../../../outgoing/outgoing-client.ts';
import type { ChannelCall, SendResult } from './channels/channel-sender.ts';
import { sendEmail } from './channels/email.ts';
import { plain } from './channels/notification-text.ts';
import { sendPagerduty } from './channels/pagerduty.ts';
import { sendSlack } from './channels/slack.ts';
import { sendWebhook } from './channels/webhook.ts';
import type { Notification } from './notification.ts';
import type { Channel } from './rule-book.ts';

export interface ChannelCallsDeps {
  client: Pick<OutgoingClient, 'send'>;
  /** Private hosts that all channels may reach. */
  allowedHosts: readonly string[];
  allowPrivateAddresses: boolean;
  env: Environment;
  seal: Seal;
  clock: Clock;
  publicUrl(): string;
  /** Returns a secret of `svc secrets`. Throws if there is none. */
  findSecret(namespaceId: string, name: string): Promise<string>;
  timeoutMs?: number;
}

export type Attempted = AlertAttempt & Pick<SendResult, 'isFinal'>;

const TIMEOUT_MS = seconds(15);
const MAX_ERROR_CHARS = 300;

/** Returns the encryption context of a channel's secret. */
export const sealContext = (namespaceId: string, name: string): string =>
  sealedColumns('alert_setting').context({ kind: 'channel', namespace_id: namespaceId, name }, 'sealed');

/** Sends notifications to channels. */
export class ChannelCalls {
  readonly #deps: ChannelCallsDeps;

  constructor(deps: ChannelCallsDeps) {
    this.#deps = deps;
  }

  /** Makes one attempt. Never rejects: failures are part of the result, without secrets. */
  async send(channel: Channel, notification: Notification): Promise<Attempted> {
    const { clock, publicUrl } = this.#deps;
    const startedAt = clock.monotonic();
    const at = clock.now();
    let secret: string | undefined;
    let result: SendResult;
    try {
      secret = await this.#secretOf(channel);
      const { settings, declared, namespaceId } = channel;
      // Operators choose the targets of the config, and of channels outside of namespaces.
      const mayBePrivate = declared || namespaceId === ALL_NAMESPACES || this.#deps.allowPrivateAddresses;
      result = await this.#call({
        settings,
        secret,
        notification,
        publicUrl: publicUrl(),
        now: at,
        mayBePrivate,
      });
    } catch (error) {
      result = { ok: false, status: null, error: failureText(error) };
    }
    const { ok, status, error, isFinal = false } = result;
    const durationMs = Math.max(0, clock.monotonic() - startedAt);
    return { at, ok, status, error: error === null ? null : safeText(error, secret), durationMs, isFinal };
  }

  #call(call: ChannelCall): Promise<SendResult> {
    const { client, timeoutMs = TIMEOUT_MS } = this.#deps;
    const tools = { client, timeoutMs };
    const { settings } = call;
    switch (settings.type) {
      case 'webhook':
        return sendWebhook({ ...call, settings }, tools);
      case 'slack':
        return sendSlack({ ...call, settings }, tools);
      case 'pagerduty':
        return sendPagerduty({ ...call, settings }, tools);
      case 'email':
        return sendEmail({ ...call, settings }, { timeoutMs, resolve: (...host) => this.#resolve(...host) });
    }
  }

  async #secretOf({ secret, namespaceId, name, settings }: Channel): Promise<string | undefined> {
    const { seal, env, findSecret } = this.#deps;
    if (secret === null) {
      if (settings.type === 'email') return undefined;
      throw new PlatformError('CONFLICT', `The channel "${name}" has no secret.`);
    }
    if ('sealed' in secret) return seal.open(secret.sealed, sealContext(namespaceId, name));
    const named = storedSecretOf(secret.ref);
    if (named !== undefined) return findSecret(namespaceId, named);
    const variable = secret.ref.slice(2, -1);
    const value = env[variable];
    if (value) return value;
    throw new PlatformError(
      'ADAPTER_NOT_CONFIGURED',
      `The channel "${name}" needs the variable ${variable}, which is not set.`,
    );
  }

  /** Returns an address of a mail server. The connection uses this address, so that a second lookup cannot differ. */
  async #resolve(host: string, mayBePrivate: boolean): Promise<string> {
    const { allowedHosts } = this.#deps;
    const isLiteral = isIP(host) !== 0;
    const found = isLiteral ? [{ address: host }] : await dnsLookup(host, { all: true });
    const [first] = found;
    if (!first) throw new Error(`${host} has no address`);
    for (const { address } of found) {
      const kind = privateKindOf(address);
      if (kind === undefined) continue;
      // A name never leads to link-local addresses and cloud metadata services.
      const isLocalService = (kind === 'link-local' || kind === 'metadata') && !isLiteral;
      if ((mayBePrivate || allowedHosts.includes(host)) && !isLocalService) continue;
      throw new PlatformError(
        'PERMISSION_DENIED',
        `Mail servers at ${kind} addresses are refused (${host}). An operator can list the host under outgoing.allow.`,
      );
    }
    return first.address;
  }
}

function failureText(error: unknown): string {
  const { name, code } = error as { name?: string; code?: string };
  if (name === 'TimeoutError' || name === 'AbortError') return 'The receiver did not answer in time.';
  return code === undefined || error instanceof PlatformError || messageOf(error).includes(code)
    ? messageOf(error)
    : `${messageOf(error)} (${code})`;
}

/** Removes the secret from an error, in case that a library or a receiver repeats it. */
export function safeText(text: string, secret: string | undefined): string {
  let safe = text;
  if (secret !== undefined && secret !== '') {
    const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')];
    for (const form of forms) safe = safe.replaceAll(form, '***');
    if (URL.canParse(secret)) safe = safe.replaceAll(new URL(secret).pathname, '/***');
  }
  return plain(safe, MAX_ERROR_CHARS);
}

/** Returns where a channel sends to, without secrets. */
export function targetOf(settings: AlertChannelSettings): string {
  switch (settings.type) {
    case 'webhook': {
      const { origin, pathname, search } = new URL(settings.url);
      return `${origin}${pathname}${search === '' ? '' : '?…'}`;
    }
    case 'slack':
      return 'Slack';
    case 'pagerduty':
      return new URL(settings.url).host;
    case 'email':
      return settings.to.join(', ');
  }
}
