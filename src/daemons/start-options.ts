import { type Environment, secretValues } from '../kit/config/secret-ref.ts';
import { storeSecrets } from '../kit/config/store-url.ts';
import { serviceKey } from '../kit/security/keys.ts';
import type { Analytics } from '../kit/telemetry/analytics.ts';
import type { LogLevel } from '../kit/telemetry/logger.ts';
import type { Metrics } from '../kit/telemetry/metrics.ts';
import type { LineOutput } from '../kit/telemetry/output.ts';
import { keepSecret } from '../kit/telemetry/redact.ts';
import type { OtlpTarget } from '../kit/telemetry/tracer.ts';
import type { Resources } from './define-daemon.ts';
import type { Listener } from './process-protocol.ts';

export interface StartOptions
  extends Pick<
    Resources,
    | 'config'
    | 'profile'
    | 'projectDir'
    | 'dataDir'
    | 'keys'
    | 'operator'
    | 'clock'
    | 'random'
    | 'peers'
    | 'portShare'
  > {
  output: LineOutput;
  /** Path of the active config file. By default there is no config file. */
  configFile?: string | null;
  logLevel?: LogLevel;
  /** Metrics of the service. By default, the service creates its own metrics. */
  metrics?: Metrics;
  analytics?: Analytics;
  /** Source of the secrets that the config references. The default is empty. */
  env?: Environment;
  /** Target of traces. By default there is no target, and no traces are sent. */
  otlp?: OtlpTarget | undefined;
  /** Answers `ctx.fetch` in tests of plugins. */
  stubFetch?: Resources['stubFetch'];
  onSandbox?: Resources['onSandbox'];
  /**
   * Address to listen on. The default is the host and port in the service's config section. Port 0 selects any free
   * port.
   */
  listen?: { host: string; port: number };
  /** Listener of a predecessor on the same address, used instead of opening a new listener. */
  listener?: Listener | undefined;
  /** Whether the previous process crashed, rather than being killed from outside. */
  hadFault?: boolean | undefined;
  sharesStore?: Resources['sharesStore'];
  elsewhere?: Resources['elsewhere'];
  advertise?: Resources['advertise'];
  onFatal?: Resources['onFatal'];
}

/** Registers secrets that the logger cannot recognize by their form, so that the logger masks these secrets. */
export function keepSecrets({ config, keys, operator, env = {} }: StartOptions): void {
  const { jwtSecret, previousJwtSecret, internalSecret, masterKey, previousMasterKeys = [] } = keys;
  keepSecret([
    jwtSecret,
    previousJwtSecret,
    internalSecret,
    masterKey,
    ...previousMasterKeys,
    serviceKey(internalSecret),
    operator?.clientSecret,
    ...Object.keys(config.gateway.staticTokens),
    ...secretValues([config.adapters, config.studio], env),
    ...storeSecrets(config.store, env),
    ...(config.cache.url === null ? [] : storeSecrets({ url: config.cache.url }, env)),
  ]);
}
