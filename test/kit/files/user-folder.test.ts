import { homedir } from 'node:os';
import { expect, test } from 'vitest';
import { userCacheFolder, userConfigFolder } from '../../../src/kit/files/user-folder.ts';

test('XDG folders count when they are absolute; empty or relative they are unset', () => {
  expect(userConfigFolder({ HOME: '/home/ada', XDG_CONFIG_HOME: '/etc/ada' })).toBe('/etc/ada');
  for (const XDG_CONFIG_HOME of ['', 'config', undefined])
    expect(userConfigFolder({ HOME: '/home/ada', XDG_CONFIG_HOME })).toBe('/home/ada/.config');
  expect(userConfigFolder({ HOME: '' })).toBe(`${homedir()}/.config`);
  expect(userCacheFolder({ HOME: '/home/ada', XDG_CACHE_HOME: '/var/ada' })).toBe('/var/ada');
  expect(userCacheFolder({ HOME: '/home/ada', XDG_CACHE_HOME: 'cache' })).toBe('/home/ada/.cache');
});
