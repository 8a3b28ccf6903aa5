import { text } from '../../plugins/templates/template.ts';

/** Code of a plugin with imported hooks. The settings of each hook are in `hooks.json`. */
export const HOOKS_JS = text(`
  import { spawn } from 'node:child_process';
  import { timingSafeEqual } from 'node:crypto';
  import { readFileSync } from 'node:fs';
  import { mkdtemp, rm, writeFile } from 'node:fs/promises';
  import { BlockList, isIP } from 'node:net';
  import { tmpdir } from 'node:os';
  import { join } from 'node:path';
  import { defineValidator, defineWebhook, fail, ok } from 'svc-platform/sdk';

  const HOOKS = JSON.parse(readFileSync(new URL('./hooks.json', import.meta.url), 'utf8'));
  /** Maximum output of a command that is kept, in bytes. */
  const MAX_OUTPUT = 256 * 1024;

  /** Runs the command of the webhook, if the request meets the conditions of the hook. */
  export const run = defineWebhook(async (ctx, payload) => {
    const hook = HOOKS[ctx.hostContext.event];
    const request = requestOf(ctx.hostContext, payload, hook);
    if (!hook.conditions.every((condition) => meets(condition, request))) {
      ctx.log.info('The conditions of the hook are not met');
      return ok({ status: hook.mismatchStatus, body: 'Hook rules were not satisfied.' });
    }
    const folder = await mkdtemp(join(tmpdir(), 'hook-'));
    try {
      const { exitCode, output } = await execute(hook, request, folder, ctx.signal);
      ctx.log.info('The command ended', { exitCode, output: output.slice(0, 4096) });
      if (exitCode === 0) return ok({ status: hook.successStatus, headers: hook.headers, body: output });
      if (hook.showsErrors) return ok({ status: 500, headers: hook.headers, body: output });
      return fail('COMMAND_FAILED', \`The command ended with exit code \${exitCode}.\`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  /** Compares the secret in the query or the body. Used by hooks whose sender sends no header. */
  export const isAllowed = defineValidator(async (ctx, { rawBody, secret }) => {
    const { event, query = {} } = ctx.hostContext;
    const { source, name } = HOOKS[event].token;
    const given = source === 'url' ? query[name] : valueAt(bodyOf(rawBody, HOOKS[event]), name);
    if (typeof given !== 'string') return { valid: false };
    const [one, other] = [Buffer.from(given), Buffer.from(secret)];
    return { valid: one.length === other.length && timingSafeEqual(one, other) };
  });

  function bodyOf(rawBody, { isForm }) {
    const body = Buffer.from(rawBody, 'base64').toString();
    try {
      return isForm ? Object.fromEntries(new URLSearchParams(body)) : JSON.parse(body);
    } catch {
      return {};
    }
  }

  function requestOf({ method = 'POST', query = {}, headers = {}, source }, payload, { jsonParameters }) {
    const request = { method, address: source, url: { ...query }, header: { ...headers }, payload: structuredClone(payload) };
    for (const parameter of jsonParameters) {
      const values = request[parameter.source];
      const name = parameter.source === 'header' ? parameter.name.toLowerCase() : parameter.name;
      if (typeof values?.[name] === 'string') values[name] = JSON.parse(values[name]);
    }
    return request;
  }

  /** Returns the value of an argument as text, or undefined if the request does not have it. */
  function valueOf({ source, name }, request) {
    switch (source) {
      case 'string':
        return name;
      case 'request':
        return name.toLowerCase() === 'method' ? request.method : request.address;
      case 'entire-payload':
      case 'raw-request-body':
        return JSON.stringify(request.payload);
      case 'entire-headers':
        return JSON.stringify(request.header);
      case 'entire-query':
        return JSON.stringify(request.url);
      default:
        return textOf(valueAt(request[source], source === 'header' ? name.toLowerCase() : name));
    }
  }

  /** Reads a dot path, such as \`commits.0.id\`. A key that contains dots has priority. */
  function valueAt(values, path) {
    if (typeof values !== 'object' || values === null) return undefined;
    if (Object.hasOwn(values, path)) return values[path];
    const dot = path.indexOf('.');
    if (dot === -1 || !Object.hasOwn(values, path.slice(0, dot))) return undefined;
    return valueAt(values[path.slice(0, dot)], path.slice(dot + 1));
  }

  function textOf(value) {
    if (value === undefined) return undefined;
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
  }

  function meets(condition, request) {
    if (condition.and) return condition.and.every((each) => meets(each, request));
    if (condition.or) return condition.or.some((each) => meets(each, request));
    if (condition.not) return !meets(condition.not, request);
    if (condition.addresses) return isWithin(request.address, condition.addresses);
    const value = valueOf(condition.parameter, request);
    if (value === undefined) return false;
    const { regex } = condition;
    return regex ? new RegExp(regex.source, regex.flags).test(value) : value === condition.value;
  }

  function isWithin(address, ranges) {
    const list = new BlockList();
    for (const range of ranges) {
      const [network, prefix] = range.split('/');
      const family = isIP(network) === 6 ? 'ipv6' : 'ipv4';
      list.addSubnet(network, Number(prefix ?? (family === 'ipv6' ? 128 : 32)), family);
    }
    return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }

  /** Runs the command. Kills it when the time limit of the webhook ends. */
  async function execute(hook, request, folder, signal) {
    const env = { PATH: process.env.PATH };
    for (const argument of hook.environment)
      env[argument.envname ?? \`HOOK_\${argument.name}\`] = valueOf(argument, request) ?? '';
    for (const [index, argument] of hook.files.entries()) {
      const path = join(folder, String(index));
      const value = valueOf(argument, request) ?? '';
      await writeFile(path, argument.base64decode ? Buffer.from(value, 'base64') : value);
      env[argument.envname ?? \`HOOK_\${argument.name}\`] = path;
    }
    const args = hook.arguments.map((argument) => valueOf(argument, request) ?? '');
    const child = spawn(hook.command, args, { cwd: hook.folder ?? folder, env, signal, killSignal: 'SIGKILL' });
    const chunks = [];
    let bytes = 0;
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        bytes += chunk.length;
        if (bytes <= MAX_OUTPUT) chunks.push(chunk);
      });
    const exitCode = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
    return { exitCode, output: Buffer.concat(chunks).toString() };
  }
`);
