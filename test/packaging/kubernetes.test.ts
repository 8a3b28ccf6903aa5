import { Deployment } from 'kubernetes-models/apps/v1';
import { Job } from 'kubernetes-models/batch/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Secret, Service } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import { PlatformConfig, SERVICE_NAMES, type ServiceName } from '../../src/contracts/index.ts';
import { clusterProblems } from '../../src/kit/config/cluster.ts';
import { drainDelayMsOf } from '../../src/kit/config/drain-delay.ts';
import { STOP_DEADLINES } from '../../src/kit/time/stop-deadlines.ts';
import type { AnyJson } from '../support/any-json.ts';
import { findManifest as find, manifests, nameOf } from '../support/kubernetes.ts';

/** Kinds with their schemas of Kubernetes, which the package has compiled with ajv. */
const KINDS: Record<string, new (manifest: never) => { validate(): void }> = {
  'apps/v1 Deployment': Deployment,
  'batch/v1 Job': Job,
  'networking.k8s.io/v1 NetworkPolicy': NetworkPolicy,
  'policy/v1 PodDisruptionBudget': PodDisruptionBudget,
  'v1 ConfigMap': ConfigMap,
  'v1 Secret': Secret,
  'v1 Service': Service,
};

/**
 * Returns the paths of fields that a validation has not read. The schemas of Kubernetes allow unknown fields, which the
 * API server drops: a misspelt field would have no effect.
 */
function unreadFields(manifest: AnyJson, validate: (watched: AnyJson) => void): string[] {
  const read = new Set<string>();
  const watch = (value: AnyJson, path: string): AnyJson =>
    typeof value !== 'object' || value === null
      ? value
      : new Proxy(value, {
          get(target, key) {
            if (typeof key === 'string' && Object.hasOwn(target, key)) read.add(`${path}/${key}`);
            return Array.isArray(target) && !/^\d+$/.test(String(key))
              ? Reflect.get(target, key)
              : watch(Reflect.get(target, key), `${path}/${String(key)}`);
          },
        });
  validate(watch(manifest, ''));
  const all = (value: AnyJson, path: string): string[] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, each]) => [`${path}/${key}`, ...all(each, `${path}/${key}`)])
      : [];
  return all(manifest, '').filter((path) => !read.has(path));
}

function validate(manifest: AnyJson): string[] {
  const Kind = KINDS[`${manifest.apiVersion} ${manifest.kind}`];
  if (!Kind) throw new Error(`${nameOf(manifest)} has a kind without a schema`);
  return unreadFields(manifest, (watched) => Kind.prototype.validate.call(watched));
}

describe('the manifests in examples/kubernetes', () => {
  test.each(manifests.map((manifest) => [nameOf(manifest), manifest] as const))(
    '%s is valid, without unknown fields',
    (_name, manifest) => {
      expect(validate(manifest)).toEqual([]);
    },
  );

  test('invalid values and misspelt fields would be found', () => {
    const wrong = structuredClone(find('Deployment', 'svc-rest'));
    wrong.spec.template.spec.containers[0].livenesProbe = {};
    expect(validate(wrong)).toEqual(['/spec/template/spec/containers/0/livenesProbe']);
    wrong.spec.replicas = 'two';
    expect(() => validate(wrong)).toThrow(/replicas/);
  });

  test.each(SERVICE_NAMES)('%s runs, is probed and is reached at its own port', (name) => {
    const { spec } = find('Deployment', `svc-${name}`);
    const [container] = spec.template.spec.containers;
    expect([container.args, spec.selector.matchLabels]).toEqual([[name], spec.template.metadata.labels]);
    const { port } = PlatformConfig.parse({})[name];
    expect(container.ports).toEqual([{ name: 'http', containerPort: port }]);
    const prefix = name === 'rest' ? '/api/v1' : '';
    expect([container.livenessProbe.httpGet, container.readinessProbe.httpGet]).toEqual([
      { path: `${prefix}/health`, port: 'http' },
      { path: `${prefix}/ready`, port: 'http' },
    ]);
    const service = find('Service', `svc-${name}`);
    expect(service.spec.selector).toEqual(spec.selector.matchLabels);
    expect(service.spec.ports[0].targetPort).toBe('http');
  });

  test.each(SERVICE_NAMES)('%s has time to stop', (name) => {
    const stopMs =
      drainDelayMsOf(config(name), name) + config(name)[name].drainMs + STOP_DEADLINES.processEndMs;
    const { terminationGracePeriodSeconds } = find('Deployment', `svc-${name}`).spec.template.spec;
    expect(terminationGracePeriodSeconds * 1000).toBeGreaterThan(stopMs);
  });

  test('the configuration lacks only the secrets, which are empty', () => {
    const secrets: Record<string, string> = find('Secret', 'svc').stringData;
    const environment = { ...secrets, ...find('ConfigMap', 'svc-environment').data };
    const empty = Object.keys(secrets).filter((key) => secrets[key] === '');
    const missing = clusterProblems(config('gateway'), environment).map(({ path }) => path);
    expect(missing).toEqual(empty.filter((key) => key !== 'DB_PASSWORD'));
    expect(empty).toContain('DB_PASSWORD');
  });
});

/** The configuration of a service in the ConfigMap, with what the image and the ConfigMap add from the environment. */
function config(name: ServiceName): PlatformConfig {
  const file = JSON.parse(find('ConfigMap', 'svc-config').data['svc.config.json']);
  const { GATEWAY_PUBLIC_URL: publicUrl } = find('ConfigMap', 'svc-environment').data;
  const parsed = PlatformConfig.parse({ ...file, gateway: { ...file.gateway, publicUrl } });
  parsed[name].host = '0.0.0.0';
  return parsed;
}
