import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BodyFormat, provisionWebhook } from '../../../src/contracts/index.ts';
import { PROVIDERS } from '../../../src/webhooks/providers/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

const PLUGIN = 'catalogue';
/** Provisions are limited to 10 a minute. */
const PROVISION_EVERY_MS = 7000;
/** Formats that a webhook can declare instead of its entry's. */
const FORMATS: ReadonlyArray<BodyFormat | undefined> = [undefined, 'form', 'raw'];

/** Name of the webhook of a provider that declares a format. */
export function eventOf(provider: string, format: BodyFormat | undefined): string {
  return format === undefined ? provider : `${provider}-${format}`;
}

/** The real gateway with a webhook with instances for each provider of the catalogue and each format. */
export class CatalogueGateway {
  readonly #gateway: TestGateway;
  #instances = 0;

  private constructor(gateway: TestGateway) {
    this.#gateway = gateway;
  }

  static async start(): Promise<CatalogueGateway> {
    const project = await tempDir();
    const folder = join(project, 'plugins', PLUGIN);
    await mkdir(folder, { recursive: true });
    await writeFile(
      join(folder, 'hooks.js'),
      "import { defineWebhook } from 'svc-platform/sdk';\nexport const onEvent = defineWebhook({ async execute() {} });\n",
    );
    await writeFile(join(folder, 'package.json'), '{"name":"catalogue","version":"1.0.0","type":"module"}');
    const webhooks = PROVIDERS.flatMap(({ id }) =>
      FORMATS.map((format) => ({
        ...{ event: eventOf(id, format), handler: 'hooks.js#onEvent', multi: true, async: true },
        ...{ auth: { type: 'provider', provider: id }, rateLimit: { requestsPerMinute: 100_000 } },
        ...(format === undefined ? {} : { body: format }),
      })),
    );
    await writeFile(
      join(folder, 'svc.plugin.json'),
      JSON.stringify({ schema: 'svc.plugin/3', id: PLUGIN, version: '1.0.0', webhooks }),
    );
    const gateway = await startGateway({
      projectDir: project,
      config: { gateway: { trustedProxies: ['127.0.0.1', '::1'] } },
    });
    return new CatalogueGateway(gateway);
  }

  /** Name of an instance that no case has used. Markers and budgets of one case then do not affect another. */
  newInstance(): string {
    return `case-${++this.#instances}`;
  }

  urlOf(event: string, instanceId: string): string {
    return `${this.#gateway.url}/webhooks/${PLUGIN}/${event}/${instanceId}`;
  }

  async provision(event: string, instanceId: string, secret: string): Promise<void> {
    this.#gateway.clock.advance(PROVISION_EVERY_MS);
    const body = { pluginId: PLUGIN, event, instanceId, secret };
    await this.#gateway.call(provisionWebhook, { body: body as never });
  }

  setTime(atMs: number): void {
    this.#gateway.clock.jump(atMs);
  }
}
