"""What sessions are about: 55 topics in the paper's 8 domains; the names are this project's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memharness.scenes.vocabulary import BACKGROUNDS, KINDS


@dataclass(frozen=True, slots=True)
class Topic:
    """A setting that pictures are made of.

    Attributes:
        name: in English; its background's word is in it, so that words alone make the right picture.
        zh: in Chinese, likewise.
        kinds: of the things that are found there.
    """

    name: str
    zh: str
    domain: str
    background: str
    kinds: tuple[str, ...]

    def title(self, language: str) -> str:
        """Its name in a language."""
        return self.zh if language == "zh" else self.name


_TABLE = """
commercial
    corner shop | 街角店铺 | shop | bottle basket sign clock bag
    gift shop | 礼品店铺 | shop | balloon vase bell mug box
    fashion studio | 时装摄影棚 | studio | hat bag shoe umbrella chair
    product studio | 产品摄影棚 | studio | phone lamp bottle clock suitcase
    open-air market | 露天市集 | market | basket barrel umbrella flag bicycle
    winter market | 冬季市集 | market | cake bell lamp mug hat
    shopping street | 购物街道 | street | bag sign mailbox bus balloon
industrial
    joinery workshop | 细工工坊 | workshop | chair table box gear clock
    pottery workshop | 陶艺工坊 | workshop | vase mug bottle bell table
    machine factory | 机械工厂 | factory | gear robot crane barrel train
    chocolate factory | 巧克力工厂 | factory | cake box barrel gear sign
    container harbour | 货运港口 | harbour | crane boat box barrel flag
    parcel warehouse | 快递仓库 | warehouse | box robot bicycle sign phone
    grain warehouse | 粮食仓库 | warehouse | barrel basket cat crane bag
educational
    village classroom | 乡村教室 | classroom | globe book bell chair flag
    art classroom | 美术教室 | classroom | vase flower table lamp hat
    school library | 学校图书馆 | library | book globe clock chair cat
    old library | 老图书馆 | library | lamp book telescope table suitcase
    school playground | 学校操场 | playground | ball kite bench tree bicycle
    maritime museum | 航海博物馆 | museum | boat bell globe flag fish
    toy museum | 玩具博物馆 | museum | train robot ball kite car
public service
    railway station | 铁路车站 | station | train clock bench suitcase sign
    fire station | 消防车站 | station | hydrant car bell hat flag
    city park | 城市公园 | park | bench tree bird balloon bicycle
    memorial park | 纪念公园 | park | flag flower rock lamp bush
    children's hospital ward | 儿童病房 | hospital | bed balloon ball book clock
    recovery hospital ward | 康复病房 | hospital | bed flower lamp chair mug
    post office street | 邮局街道 | street | mailbox bicycle box sign cat
hospitality
    grand hotel lobby | 豪华酒店大堂 | hotel | suitcase vase lamp bell chair
    airport hotel lobby | 机场酒店大堂 | hotel | suitcase clock phone bus globe
    corner cafe | 街角咖啡馆 | cafe | mug cake chair cat sign
    rooftop cafe | 屋顶咖啡馆 | cafe | umbrella table bottle flower bird
    restaurant kitchen | 餐馆厨房 | kitchen | bottle basket cake bell table
    farmhouse kitchen | 农家厨房 | kitchen | fish mug vase basket mushroom
    inn garden | 客栈花园 | garden | lamp bench umbrella butterfly table
natural landscape
    sandy beach | 沙滩海滩 | beach | boat umbrella ball fish bird
    cliff beach | 悬崖海滩 | beach | rock boat kite tent tower
    alpine mountains | 高山山谷 | mountains | tent house flag bird rock
    pine forest | 针叶森林 | forest | mushroom butterfly tent house bird
    autumn forest | 秋日森林 | forest | tree mushroom bench cat basket
    quiet lake | 宁静湖边 | lake | boat bridge fish house bird
    rolling desert | 无垠沙漠 | desert | tent rock flag car bottle
scientific
    chemistry laboratory | 化学实验室 | laboratory | flask bottle microscope clock book
    physics laboratory | 物理实验室 | laboratory | ball gear lamp telescope robot
    shallow reef | 浅海珊瑚礁 | reef | fish rock boat flower barrel
    deep reef | 深海珊瑚礁 | reef | fish robot bell box rock
    tropical greenhouse | 热带温室 | greenhouse | flower butterfly bird basket tree
    seedling greenhouse | 育苗温室 | greenhouse | bush flower microscope table mushroom
    polar snowfield | 极地雪原 | snowfield | tent flag satellite box rocket
space
    crater moon base | 环形山月球基地 | moon | rocket robot flag car satellite
    mining moon base | 采矿月球基地 | moon | crane barrel rock gear train
    low orbit | 近地轨道 | orbit | satellite rocket planet robot box
    outer orbit | 外层轨道 | orbit | planet satellite telescope bell ball
    Mars colony | 火星殖民地 | mars | house rocket tower car flag
    Mars canyon | 火星峡谷 | mars | robot rock telescope tent balloon
"""


def _topics() -> dict[str, Topic]:
    found = {}
    domain = ""
    for line in _TABLE.strip().splitlines():
        if "|" not in line:
            domain = line.strip()
            continue
        name, zh, background, kinds = (part.strip() for part in line.split("|"))
        found[name] = Topic(name, zh, domain, background, tuple(kinds.split()))
    return found


TOPICS: Mapping[str, Topic] = _topics()
DOMAINS = tuple(dict.fromkeys(topic.domain for topic in TOPICS.values()))
assert len(TOPICS) == 55  # as the paper counts them
assert len(DOMAINS) == 8
assert all(topic.background in BACKGROUNDS and set(topic.kinds) <= set(KINDS) for topic in TOPICS.values())
