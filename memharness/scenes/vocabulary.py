"""The names that scenes are made of, how each looks, and its words in English and Chinese, the usual one first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]
RGB: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Term:
    """The words of a name, by language; the first is the one that is written, all are read."""

    en: tuple[str, ...]
    zh: tuple[str, ...]

    def words(self, language: str) -> tuple[str, ...]:
        """All words in a language (`en` or `zh`)."""
        return self.zh if language == "zh" else self.en

    def word(self, language: str) -> str:
        """The usual word in a language."""
        return self.words(language)[0]


def _terms(table: str) -> dict[str, Term]:
    """Terms from lines of `name: words, … | words, …`; the name is the first English word unless it is given."""
    found = {}
    for line in table.strip().splitlines():
        name, _, words = line.strip().partition(":")
        en, _, zh = words.partition("|")
        found[name.strip()] = Term(*(tuple(word.strip() for word in part.split(",")) for part in (en, zh)))
    return found


COLOUR_VALUES: Mapping[str, RGB] = {
    "red": (214, 48, 49),
    "orange": (240, 140, 30),
    "yellow": (250, 215, 50),
    "green": (46, 160, 67),
    "blue": (40, 105, 215),
    "purple": (135, 70, 175),
    "pink": (245, 140, 180),
    "brown": (125, 80, 45),
    "white": (246, 246, 240),
    "black": (38, 38, 42),
    "turquoise": (40, 190, 185),
    "grey": (140, 142, 146),
}
COLOURS = _terms("""
    red: red, scarlet | 红色, 红
    orange: orange | 橙色, 橘色, 橙
    yellow: yellow | 黄色, 黄
    green: green | 绿色, 绿
    blue: blue | 蓝色, 蓝
    purple: purple, violet | 紫色, 紫
    pink: pink | 粉色, 粉红色, 粉红
    brown: brown | 棕色, 褐色, 咖啡色
    white: white | 白色, 白
    black: black | 黑色, 黑
    turquoise: turquoise, teal | 青色, 青绿色
    grey: grey, gray | 灰色, 灰
""")
MATERIALS = _terms("""
    plain: painted, plain | 漆面, 普通
    wood: wooden, wood | 木制, 木头, 木质, 木
    metal: metal, metallic, steel | 金属, 铁制
    glass: glass | 玻璃
    stone: stone | 石头, 石质, 石制
    fabric: fabric, cloth | 布艺, 布料, 布制
    striped: striped | 条纹
    dotted: dotted, spotted | 圆点, 波点
""")
SIZES = _terms("""
    small: small, little | 小号, 小的, 小
    medium: medium-sized, medium | 中号, 中等
    large: large, big | 大号, 大的, 大
""")
PLACES = _terms("""
    middle: in the middle, the middle, in the centre, the centre, in the center, the center | 正中间, 中间, 中央
    left: on the left, to the left, the left side | 左边, 左侧
    right: on the right, to the right, the right side | 右边, 右侧
    front: in front, in the foreground, the front | 前面, 前方
    front left: in front on the left, front left | 左前方
    front right: in front on the right, front right | 右前方
    top left: at the top left, top left, the top left, the upper left, upper left | 左上方, 左上角
    top right: at the top right, top right, the top right, the upper right, upper right | 右上方, 右上角
    top: at the top, the top, above | 上方, 顶上
""")
GRID: Mapping[str, tuple[int, int]] = {  # column and row of each place
    "middle": (1, 1),
    "left": (0, 1),
    "right": (2, 1),
    "front": (1, 2),
    "front left": (0, 2),
    "front right": (2, 2),
    "top left": (0, 0),
    "top right": (2, 0),
    "top": (1, 0),
}
LAYOUTS = _terms("""
    level: at eye level | 平视
    open: under a wide sky, from below | 仰视
    high: from above, from high up | 俯视
""")
LIGHTS = _terms("""
    day: by day, in daylight, daylight, daytime | 白天, 日光下, 日光
    dusk: at dusk, at sunset, dusk, sunset | 黄昏, 夕阳下, 傍晚
    night: at night, by night, night, moonlight | 夜晚, 夜里, 月光下
    fog: in fog, foggy, fog | 雾中, 大雾, 雾
    neon: in neon light, neon | 霓虹灯光下, 霓虹
""")
KINDS = _terms("""
    lamp: lamp | 台灯, 灯
    chair: chair | 椅子
    table: table | 桌子
    vase: vase | 花瓶
    mug: mug, cup | 杯子, 马克杯
    bottle: bottle | 瓶子
    clock: clock | 时钟, 钟
    book: book | 书本, 书
    box: box, crate | 箱子, 盒子
    umbrella: umbrella, parasol | 雨伞, 伞
    ball: ball | 皮球, 球
    kite: kite | 风筝
    balloon: balloon | 气球
    flower: flower | 花朵, 花
    tree: tree | 树木, 大树, 树
    bush: bush, shrub | 灌木
    rock: rock, boulder | 岩石
    mushroom: mushroom | 蘑菇
    fish: fish | 鱼
    bird: bird | 小鸟, 鸟
    cat: cat | 猫
    butterfly: butterfly | 蝴蝶
    house: house, cabin | 房子, 小屋
    tent: tent | 帐篷
    tower: tower | 塔楼, 塔
    bridge: bridge | 桥
    sign: signpost, sign | 路牌, 牌子
    boat: boat | 小船, 船
    car: car | 汽车, 小车
    bus: bus | 公交车, 巴士
    train: train, locomotive | 火车
    bicycle: bicycle, bike | 自行车
    crane: crane | 起重机
    barrel: barrel, drum | 圆桶, 桶
    gear: gear, cogwheel | 齿轮
    robot: robot | 机器人
    rocket: rocket | 火箭
    planet: planet | 行星
    satellite: satellite | 卫星
    telescope: telescope | 望远镜
    microscope: microscope | 显微镜
    flask: flask | 烧瓶
    globe: globe | 地球仪
    bench: bench | 长椅
    bed: bed | 床
    suitcase: suitcase | 行李箱
    bell: bell | 铃铛
    cake: cake | 蛋糕
    basket: basket | 篮子
    bag: bag, handbag | 手提包, 包
    hat: hat | 帽子
    shoe: shoe | 鞋子, 鞋
    phone: phone | 手机
    mailbox: mailbox, letterbox | 邮筒, 邮箱
    hydrant: hydrant | 消防栓
    flag: flag | 旗帜, 旗子
""")
BACKGROUNDS = _terms("""
    studio: studio | 摄影棚
    shop: shop | 店铺
    market: market | 市集
    street: street | 街道
    cafe: cafe | 咖啡馆
    hotel: hotel lobby, lobby | 酒店大堂, 大堂
    kitchen: kitchen | 厨房
    garden: garden | 花园
    workshop: workshop | 工坊
    factory: factory | 工厂
    harbour: harbour, harbor | 港口
    warehouse: warehouse | 仓库
    classroom: classroom | 教室
    library: library | 图书馆
    playground: playground | 操场
    museum: museum | 博物馆
    station: station | 车站
    park: park | 公园
    hospital: hospital ward, ward | 病房
    beach: beach | 海滩
    mountains: mountains | 山谷
    forest: forest | 森林
    desert: desert | 沙漠
    lake: lake | 湖边
    snowfield: snowfield | 雪原
    laboratory: laboratory, lab | 实验室
    reef: reef | 珊瑚礁
    greenhouse: greenhouse | 温室
    moon: moon base | 月球基地
    orbit: orbit | 轨道
    mars: Mars, red desert of Mars | 火星
""")
